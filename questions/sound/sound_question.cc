#include "ott/questions/sound/sound_question.h"

#include <string>
#include <utility>
#include <vector>

#include "ott/questions/sound/check_command.h"
#include "ott/questions/sound/disk_evidence.h"
#include "ott/questions/sound/sound.h"
#include "ott/questions/sound/sound_answer.h"

namespace ott::sound {
namespace {

absl::StatusOr<Findings> Ask(const AskedRun& run) {
  Findings findings;
  // If ranks left no records, `ott check` reads the dumps, which takes longer than a report.
  std::vector<std::string> unreadable;
  if (ReadSoundRecords(run.run_dir, run.ranks, &unreadable).empty() && unreadable.empty()) return findings;
  // Other code says what is wrong with run.json or the folder.
  const int num_ranks = run.info ? run.info->world_size() : static_cast<int>(run.ranks.size());
  const SoundVerdict verdict = JudgeSound(ReadEvidence(run.run_dir, run.ranks, run.info, &findings.problems),
                                          num_ranks, run.info ? run.info->config().sound() : SoundConfig());
  Answer answer = AnswerSound(verdict);
  findings.is_news = verdict.kind() != SoundVerdict::NOT_LOOKED_AT;
  if (verdict.kind() == SoundVerdict::UNSOUND) {
    AddNext({"check", run.run_dir}, &answer);
    findings.details = {{"Rules that the steps broke", ToText(verdict)}};
  }
  findings.answers = {std::move(answer)};
  if (findings.is_news) {
    findings.metrics = {{"ott_unsound_findings",
                         "Rules of a sound training step that were broken.",
                         {{static_cast<double>(verdict.findings_size()), {}}}}};
  }
  return findings;
}

}  // namespace

Question SoundQuestion() { return {kQuestion.title, AddCheckCommand, Ask}; }

}  // namespace ott::sound
