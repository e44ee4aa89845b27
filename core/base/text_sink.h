// Receives the tables and verdicts that this library prints.

#ifndef OTT_CORE_BASE_TEXT_SINK_H_
#define OTT_CORE_BASE_TEXT_SINK_H_

#include <functional>
#include <string_view>

namespace ott {

// Takes one or more whole lines, with their newlines. Called on the thread that has something to say, on
// several at a time where several have.
using TextSink = std::function<void(std::string_view lines)>;

// From now on tables, verdicts and notices go there instead of stdout; empty: to stdout again. Thread-safe.
// A line that one rank prints, mostly rank 0, goes to the sink of that rank. Warnings and errors go to stderr
// in any case.
//
//   ott::SetTextSink([](std::string_view lines) { LOG(INFO) << lines; });
void SetTextSink(TextSink sink);

// Hands whole lines to the sink; to stdout without a buffer behind.
void PrintLines(std::string_view lines);

}  // namespace ott

#endif  // OTT_CORE_BASE_TEXT_SINK_H_
