#include "tools/report/page.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ott/questions/answer/display_text.h"
#include "tools/report/document_json.h"
#include "tools/report/page/page_files.h"

namespace ott::report {
namespace {

// For text and for attributes.
std::string EscapeHtml(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string Text(const Json& text) { return EscapeHtml(text.get<std::string>()); }

// Marks and styles are those of the terminal and style.css.
struct Badge {
  const char* mark;
  const char* style;
};

Badge BadgeOf(Answer::Finding finding) {
  switch (finding) {
    case Answer::GOOD:
      return {"+ Good", "good"};
    case Answer::BAD:
      return {"! Bad news", "bad"};
    case Answer::CANNOT_TELL:
      return {"? Cannot tell", "unknown"};
    default:
      return {"? Not asked", "unknown"};
  }
}

// The first sentence is the answer, what follows belongs to it.
std::string DrawSentences(const Json& sentences) {
  std::string html;
  for (const Json& sentence : sentences) {
    absl::StrAppend(&html, html.empty() ? "<strong>" : "\n", Text(sentence), html.empty() ? "</strong>" : "");
  }
  return html;
}

void AppendAnswer(const Json& answer, std::string* html) {
  Answer::Finding finding = Answer::NOT_ASKED;
  Answer::Finding_Parse(answer.at("finding").get<std::string>(), &finding);
  const Badge look = BadgeOf(finding);
  absl::StrAppend(html, "<li class=\"answer ", look.style, "\" id=\"answer-", Text(answer.at("question")),
                  "\"><div class=\"question\"><h2>", Text(answer.at("title")), "</h2><span class=\"grade\">",
                  look.mark, "</span></div><p class=\"text\">", DrawSentences(answer.at("sentences")),
                  "</p>");
  if (!answer.at("how_sure").get<std::string>().empty()) {
    absl::StrAppend(html, "<p class=\"certainty\">How sure: ", Text(answer.at("how_sure")), "</p>");
  }
  for (const Json& line : answer.at("next")) {
    absl::StrAppend(html, "<p class=\"next\">Next: <code>", Text(line), "</code></p>");
  }
  for (const Json& picture : answer.at("pictures")) {
    absl::StrAppend(html, "<a class=\"to-picture\" href=\"#", Text(picture),
                    "\" aria-label=\"See the picture: ", Text(answer.at("title")), "\">See the picture</a>");
  }
  absl::StrAppend(html, "</li>\n");
}

std::string DrawAnswers(const Json& json) {
  std::string html = "<ul class=\"answers\">\n";
  for (const Json& answer : json.at("answers")) AppendAnswer(answer, &html);
  for (const Json& problem : json.at("problems")) {
    absl::StrAppend(
        &html,
        "<li class=\"answer unknown\"><div class=\"question\"><h2>Incomplete</h2></div><p class=\"text\">",
        Text(problem), "</p></li>\n");
  }
  return html + "</ul>\n";
}

std::string DrawDetails(const Json& json) {
  std::string html = json.at("details").empty() ? "" : "<h2>As on the terminal</h2>\n";
  for (const Json& details : json.at("details")) {
    absl::StrAppend(&html, "<details><summary>", Text(details.at("title")), "</summary><pre tabindex=\"0\">",
                    Text(details.at("text")), "</pre></details>\n");
  }
  return html;
}

std::string Assemble(const Document& document, const PageOptions& options) {
  const Json json = ToJson(document);
  // No byte of the data can end the element or begin a comment in it.
  const std::string data =
      absl::StrReplaceAll(Dump(json, -1), {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
  std::string library(kD3);
  if (!library.empty()) library = absl::StrCat("<script>\n", library, "</script>\n");
  return absl::StrReplaceAll(std::string(kPage),
                             {
                                 {"{{title}}", Text(json.at("title"))},
                                 {"{{subject}}", Text(json.at("subject"))},
                                 {"{{style}}", std::string(kStyle)},
                                 {"{{answers}}", DrawAnswers(json)},
                                 {"{{details}}", DrawDetails(json)},
                                 {"{{reload_seconds}}", absl::StrCat(options.reload_seconds)},
                                 {"{{data}}", data},
                                 {"{{library}}", library},
                                 {"{{script}}", std::string(kScript)},
                             });
}

void LeaveOutLargestPicture(Document* document) {
  std::string largest;
  size_t most = 0;
  for (const auto& [name, picture] : document->pictures.items()) {
    const size_t size = Dump(picture, -1).size();
    if (size > most) {
      most = size;
      largest = name;
    }
  }
  document->pictures.erase(largest);
  document->thinned.push_back(absl::StrCat("the picture ", largest, " would make the page too large"));
  RemoveLinksToNothing(document);
}

}  // namespace

std::string ToPage(const Document& document, const PageOptions& options) {
  std::string page = Assemble(document, options);
  if (page.size() <= kMaxPageBytes) return page;
  // Only names that are made to be long get here.
  Document smaller = document;
  for (Details& details : smaller.details) details.text = DisplayLines(details.text, 4000);
  smaller.thinned.push_back("the tables below are cut");
  page = Assemble(smaller, options);
  while (page.size() > kMaxPageBytes && !smaller.pictures.empty()) {
    LeaveOutLargestPicture(&smaller);
    page = Assemble(smaller, options);
  }
  return page;
}

}  // namespace ott::report
