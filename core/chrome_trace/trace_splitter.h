// Splits the JSON of a trace into its events, a window of the file at a time.

#ifndef OTT_CORE_CHROME_TRACE_TRACE_SPLITTER_H_
#define OTT_CORE_CHROME_TRACE_TRACE_SPLITTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ott/core/chrome_trace/byte_source.h"

namespace ott::chrome_trace {

// Follows strings and brackets alone; what is in an event is for a JSON library. Not thread-safe.
//
//   TraceSplitter splitter(*source);
//   while (splitter.Next(&part)) ...
class TraceSplitter {
 public:
  struct Part {
    // "" for an event of "traceEvents"; else the name of a member beside it, without its quotes.
    std::string_view member;
    // JSON text, valid until the next call; kPadding bytes after it may be read.
    std::string_view text;
    int64_t offset = 0;  // of the text in the unpacked file
  };

  // Many events, with commas between them. The bytes before the first and after the last may be overwritten
  // until the next call; kPadding more may be read.
  struct Batch {
    char* begin = nullptr;
    size_t size = 0;
    int64_t offset = 0;
  };

  // Bytes that simdjson may read beyond a text.
  static constexpr size_t kPadding = 64;

  explicit TraceSplitter(ByteSource& source);

  // Returns false at the end of the file, or of what can be followed.
  bool Next(Part* part);

  // Gives as many whole events as are in a window, as it seems from the text around the end of the last; the
  // parser finds out whether it is so. False if there is none to be seen: Next() tells why.
  bool NextBatch(Batch* batch);
  // Says that so many bytes of the batch are done with.
  void Skip(size_t bytes) { at_ += bytes; }

  // Returns true if the text was one of a trace from its beginning on.
  bool began() const { return state_ != State::kStart; }
  // Returns true if the end of the file came inside of the trace.
  bool truncated() const { return truncated_; }
  // Returns where the text ended, or could not be followed any further.
  int64_t position() const { return base_ + static_cast<int64_t>(at_); }
  // Bytes between events that belong there by no rule of JSON.
  int64_t num_stray_bytes() const { return num_stray_bytes_; }
  // Members and events of more bytes than are held at a time, which are left out.
  int64_t num_too_long() const { return num_too_long_; }

 private:
  enum class State { kStart, kMembers, kEvents, kEnd };

  bool NextEvent(Part* part);
  bool NextMember(Part* part);
  // Returns false: the file ends here, where it should not.
  bool EndTruncated();
  // Makes the value from at_ to `end` the part, and goes on behind it. False if it is not whole, being too
  // long: it is only skipped.
  bool Take(size_t end, bool whole, std::string_view member, Part* part);
  // Returns the next character that is no white space; -1 at the end.
  int Peek();
  // Finds the end of the value at at_, which is in the window then; false at the file's end. *whole: false
  // for one that is too long, of which only the end is.
  bool FindEnd(size_t* end, bool* whole);
  // Reads on, keeping what is from `keep` on. False at the end of the file.
  bool Refill(size_t* keep);

  ByteSource& source_;
  std::vector<char> window_;
  size_t at_ = 0;
  size_t end_ = 0;
  int64_t base_ = 0;  // of the window in the file
  bool at_end_of_file_ = false;
  State state_ = State::kStart;
  bool is_list_ = false;  // the events are all there is, without members beside them
  std::string member_;
  bool truncated_ = false;
  int64_t num_stray_bytes_ = 0;
  int64_t num_too_long_ = 0;
};

}  // namespace ott::chrome_trace

#endif  // OTT_CORE_CHROME_TRACE_TRACE_SPLITTER_H_
