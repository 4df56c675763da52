from policygen.cli.main import run

run()
