// Whether hipcc, its clang and what that links work together.
__attribute__((global)) void policygen_trial() {}
