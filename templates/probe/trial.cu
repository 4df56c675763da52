// What nvcc is tried with: it has no inputs. nvcc itself includes its headers and those of the host compiler.
__global__ void trial(int* out)
{
  *out = 1;
}
