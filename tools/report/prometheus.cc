#include "tools/report/prometheus.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "ott/core/base/utf8.h"

namespace ott::report {
namespace {

class Exposition {
 public:
  explicit Exposition(const std::string& run_dir) : run_dir_(run_dir) {}

  // Once a name, before its samples.
  void Describe(const char* name, const char* help, bool only_grows = false) {
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name,
                    only_grows ? " counter\n" : " gauge\n");
  }

  void Add(const char* name, double value,
           const std::vector<std::pair<const char*, std::string>>& labels = {}) {
    absl::StrAppend(&text_, name, "{run=\"", Escape(run_dir_), "\"");
    for (const auto& [key, label] : labels) absl::StrAppend(&text_, ",", key, "=\"", Escape(label), "\"");
    absl::StrAppendFormat(&text_, "} %.10g\n", value);
  }

  std::string Finish() { return std::move(text_); }

 private:
  static std::string Escape(std::string_view label) {
    return absl::StrReplaceAll(ValidUtf8(label), {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
  }

  const std::string run_dir_;
  std::string text_;
};

}  // namespace

std::string ToPrometheus(const RunReport& report, const Document& document) {
  Exposition exposition(report.run.run_dir);
  exposition.Describe("ott_complete", "1 if everything that was to be measured and compared was.");
  const bool is_complete =
      document.problems.empty() &&
      std::none_of(document.answers.begin(), document.answers.end(),
                   [](const Answer& answer) { return answer.finding() == Answer::CANNOT_TELL; });
  exposition.Add("ott_complete", is_complete ? 1 : 0);
  exposition.Describe("ott_diverged", "1 if replicas, or this run and its reference, differ.");
  exposition.Add("ott_diverged", report.diverged ? 1 : 0);
  exposition.Describe("ott_answer", "1 for what each question found: good, bad, cannot_tell or not_asked.");
  for (const Answer& answer : document.answers) {
    exposition.Add("ott_answer", 1,
                   {{"question", answer.question()},
                    {"finding", absl::AsciiStrToLower(Answer::Finding_Name(answer.finding()))}});
  }
  for (const Findings& findings : report.findings) {
    for (const Metric& metric : findings.metrics) {
      exposition.Describe(metric.name, metric.help, metric.only_grows);
      for (const Metric::Sample& sample : metric.samples)
        exposition.Add(metric.name, sample.value, sample.labels);
    }
  }
  return exposition.Finish();
}

}  // namespace ott::report
