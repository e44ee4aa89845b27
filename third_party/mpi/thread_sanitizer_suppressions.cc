// Open MPI's TCP transport takes its own locks in two orders, as it starts and as it ends.

extern "C" const char* __tsan_default_suppressions() { return "deadlock:mca_btl_tcp.so\n"; }
