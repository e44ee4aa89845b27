// The place in the source at which something was called.

#ifndef OTT_CORE_BASE_PLACE_H_
#define OTT_CORE_BASE_PLACE_H_

namespace ott {

// As a default argument, Current() is the place of the caller.
//
//   void Start(std::string_view name, Place place = Place::Current());
struct Place {
  const char* file;
  int line;

  static constexpr Place Current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace ott

#endif  // OTT_CORE_BASE_PLACE_H_
