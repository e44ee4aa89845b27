// Built without CUDA's headers: the library records NVTX alone.

extern "C" __attribute__((visibility("default"))) int InitializeInjection() { return 1; }
