// Compares the tables with a list of what Nsight Systems has, schema_3_28_1.txt. A line of it is a column
// (table, column, type, NOT NULL, PRIMARY KEY) or a row of an ENUM table. SQLite's table_info told them of an
// export of 3.25, and the reference of 3.28.1 adds to them.

#include "tools/profile/capture_schema.h"

#include <fstream>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sqlite3.h"

namespace ott::profile {
namespace {

std::set<std::string> NsightLines() {
  std::ifstream file("tools/profile/schema_3_28_1.txt");
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.insert(line);
  return lines;
}

std::set<std::string> OurLines() {
  std::set<std::string> lines;
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &database), SQLITE_OK);
  for (int i = 0; i < kNumTables; ++i) {
    const TableSchema& table = SchemaOf(static_cast<Table>(i));
    const std::string name = table.name;
    EXPECT_EQ(sqlite3_exec(database, ("CREATE TABLE " + name + " (" + table.columns + ")").c_str(), nullptr,
                           nullptr, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_stmt* columns = nullptr;
    sqlite3_prepare_v2(database, ("PRAGMA table_info(" + name + ")").c_str(), -1, &columns, nullptr);
    while (sqlite3_step(columns) == SQLITE_ROW) {
      const auto text = [&](int column) {
        return " " + std::string(reinterpret_cast<const char*>(sqlite3_column_text(columns, column)));
      };
      lines.insert(name + text(1) + text(2) + text(3) + text(5));
    }
    sqlite3_finalize(columns);
  }
  sqlite3_close(database);
  for (const EnumTable& table : EnumTables()) {
    for (const EnumTable::Row& row : table.rows)
      lines.insert(std::string(table.name) + " " + std::to_string(row.id) + " " + row.name + " " + row.label);
  }
  return lines;
}

TEST(CaptureSchema, TablesAreThoseOfNsightSystems) {
  EXPECT_THAT(OurLines(), ::testing::ContainerEq(NsightLines()));
}

}  // namespace
}  // namespace ott::profile
