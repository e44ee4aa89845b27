// A program that makes calls on a helper that is off, for callgrind to count; see off_instructions_test.sh.
//
//   #define KINDS(USE) USE(ByName) USE(ByHandle)
//   OTT_OFF_PROGRAM(KINDS)  // of the functions ByName() and ByHandle(), which are always inlined

#ifndef OTT_CORE_BASE_OFF_FOR_TEST_H_
#define OTT_CORE_BASE_OFF_FOR_TEST_H_

// Functions with one and with two pairs of calls: their difference is a pair without the function around it.
#define OTT_ONE_AND_TWO(kind)                               \
  extern "C" [[gnu::noinline]] void One##kind() { kind(); } \
  extern "C" [[gnu::noinline]] void Two##kind() {           \
    kind();                                                 \
    kind();                                                 \
  }

#define OTT_CALL_ONE_AND_TWO(kind) \
  One##kind();                     \
  Two##kind();

#define OTT_OFF_PROGRAM(kinds)        \
  kinds(OTT_ONE_AND_TWO) int main() { \
    for (int i = 0; i < 1000; ++i) {  \
      kinds(OTT_CALL_ONE_AND_TWO)     \
    }                                 \
  }

#endif  // OTT_CORE_BASE_OFF_FOR_TEST_H_
