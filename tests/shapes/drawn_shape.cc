#include <cmath>

#include "absl/strings/str_cat.h"
#include "ott/tests/shapes/shape.h"

namespace ott::shapes {
namespace {

constexpr double kMillisecond = 1e-3;

// A piece is done by all ranks in each `every`-th iteration, one piece after the other.
struct Piece {
  enum class Kind { kWork, kCollective, kBroadcast, kBegin, kWait };
  Kind kind = Kind::kWork;
  std::string name;
  double seconds = 0;
  int every = 1;
  int repeats = 1;
  Among among = Among::kAll;
  bool measured = false;
  // Seconds that the first of the repeats takes longer on a rank that has what is planted.
  double planted = 0;
};

// How long work takes in an iteration, by how long it takes in others.
enum class Lengths { kAlike, kShared, kPhases, kGrowing, kOwn };

class Drawer {
 public:
  explicit Drawer(int seed) : random_(static_cast<uint64_t>(seed) * 2654435761U + 99), seed_(seed) {}

  Shape Draw() {
    Shape shape;
    shape.name = absl::StrCat("drawn ", seed_);
    shape.noise = OneOf<double>({0.01, 0.03, 0.03, 0.06, 0.1});
    shape.cpu_share = OneOf<double>({0.1, 0.1, 0.5, 1});
    shape.num_iterations = OneOf<int>({200, 200, 400});
    shape.sizes = {OneOf<int>({2, 4, 4, 8})};
    if (shape.sizes[0] >= 4 && IsTrue(0.3)) shape.num_parts = 2;
    shape.declares_groups = IsTrue(0.7);
    shape.late = IsTrue(0.2) ? OneOf<double>({1.0 / 3, 0.5}) : 0;
    const Lengths lengths =
        IsTrue(0.5) ? Lengths::kAlike
                    : OneOf<Lengths>({Lengths::kShared, Lengths::kPhases, Lengths::kGrowing, Lengths::kOwn});
    shape.is_uneven = lengths == Lengths::kOwn;
    DrawPieces(shape.num_parts > 1);
    Plant();
    shape.iterate = [pieces = pieces_, lengths](const Place& at, RankProgram& program) {
      Iterate(pieces, ScaleOf(lengths, at), at, program);
    };
    shape.Complete();
    return shape;
  }

 private:
  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random_)];
  }
  bool IsTrue(double probability) { return std::bernoulli_distribution(probability)(random_); }
  double Between(double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(random_));
  }

  void DrawPieces(bool has_parts) {
    const int num_works = OneOf<int>({2, 3, 4, 5, 6});
    int begun = -1;
    for (int i = 0; i < num_works; ++i) {
      Piece work;
      work.name = absl::StrCat("work", IsTrue(0.2) ? 0 : i);
      work.seconds = Between(0.3, 8) * kMillisecond;
      work.every = IsTrue(0.8) ? 1 : OneOf<int>({2, 4, 8, 25});
      work.repeats = IsTrue(0.7) ? 1 : OneOf<int>({2, 3, 4});
      pieces_.push_back(work);
      if (begun >= 0 && IsTrue(0.6)) {
        pieces_.push_back(pieces_[static_cast<size_t>(begun)]);
        pieces_.back().kind = Piece::Kind::kWait;
        begun = -1;
      }
      if (!IsTrue(0.5)) continue;
      Piece meeting;
      meeting.name = absl::StrCat("meeting", i);
      meeting.seconds = Between(0.05, 3) * kMillisecond;
      meeting.every = IsTrue(0.8) ? 1 : OneOf<int>({2, 4});
      if (begun < 0 && IsTrue(0.4)) {
        meeting.kind = Piece::Kind::kBegin;
        meeting.measured = IsTrue(0.3);
        begun = static_cast<int>(pieces_.size());
      } else {
        meeting.kind = IsTrue(0.15) ? Piece::Kind::kBroadcast : Piece::Kind::kCollective;
        if (has_parts && meeting.kind == Piece::Kind::kCollective && IsTrue(0.6)) {
          meeting.among = OneOf<Among>({Among::kPart, Among::kPlace});
        }
      }
      pieces_.push_back(meeting);
    }
    if (begun >= 0) {
      pieces_.push_back(pieces_[static_cast<size_t>(begun)]);
      pieces_.back().kind = Piece::Kind::kWait;
    }
    Piece last;
    last.kind = Piece::Kind::kCollective;
    last.name = "allreduce";
    last.seconds = 0.5 * kMillisecond;
    last.every = IsTrue(0.8) ? 1 : 4;
    pieces_.push_back(last);
  }

  // A tenth to half of the mean work of an iteration.
  void Plant() {
    double all = 0;
    std::vector<Piece*> works;
    for (Piece& piece : pieces_) {
      if (piece.kind != Piece::Kind::kWork) continue;
      all += piece.seconds * piece.repeats / piece.every;
      if (piece.every <= 4) works.push_back(&piece);
    }
    if (works.empty()) works.push_back(&pieces_[0]);
    Piece& slow = *OneOf(works);
    slow.planted = Between(0.1, 0.5) * all * slow.every;
  }

  static double ScaleOf(Lengths lengths, const Place& at) {
    switch (lengths) {
      case Lengths::kAlike:
        return 1;
      case Lengths::kShared:
        return 0.3 + 2 * at.shared_chance * at.shared_chance;
      case Lengths::kPhases:
        return at.phase;
      case Lengths::kGrowing:
        return 0.5 + 1.0 * at.iteration / at.num_iterations;
      case Lengths::kOwn:
        return 0.7 + 0.6 * at.chance;
    }
    return 1;
  }

  static void Iterate(const std::vector<Piece>& pieces, double scale, const Place& at, RankProgram& program) {
    for (const Piece& piece : pieces) {
      if (at.iteration % piece.every != piece.every - 1) continue;
      switch (piece.kind) {
        case Piece::Kind::kWork:
          for (int i = 0; i < piece.repeats; ++i) {
            program.Work(piece.name, piece.seconds * scale, i == 0 ? at.Planted(piece.planted * scale) : 0);
          }
          break;
        case Piece::Kind::kCollective:
          program.Collective(piece.name, piece.seconds, piece.among);
          break;
        case Piece::Kind::kBroadcast:
          program.Broadcast(piece.name, 0, piece.seconds);
          break;
        case Piece::Kind::kBegin:
          program.Begin(piece.name, piece.seconds, piece.measured);
          break;
        case Piece::Kind::kWait:
          program.Wait(piece.name, piece.measured);
          break;
      }
    }
  }

  std::mt19937_64 random_;
  int seed_;
  std::vector<Piece> pieces_;
};

}  // namespace

Shape DrawnShape(int seed) { return Drawer(seed).Draw(); }

}  // namespace ott::shapes
