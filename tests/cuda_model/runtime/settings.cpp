// What the tests steer the model by, and what it tells them: settings, reports, counts.
#include <cstdlib>
#include <cstring>
#include <map>

#include "model.h"

namespace model {

static auto& reports = *new std::vector<std::string>;
static auto& counts = *new std::map<std::string, long>;

// Seconds, numbers or flags, by name; tests/cuda_model/README.md tells what each is.
static auto& settings = *new std::map<std::string, double>{
    {"devices", 4},         {"seed", 1},           {"patience", 20},     {"busy", 0.1},
    {"one_nccl_kernel", 0}, {"destroy_meets", 0},  {"accesses", 20000},  {"held", 0},            {"init_held", 0},
    {"watchdog_tells", 0},
};

double setting(const char* name) { return settings[name]; }
void report(const std::string& text) { reports.push_back(text); }
void count(const char* what) { counts[what]++; }
}  // namespace model

using namespace model;

extern "C" {
void model_set(const char* name, double value) {
  LOCKED;
  settings[name] = value;
  changed.notify_all();
}
double model_setting(const char* name) {
  LOCKED;
  return settings.count(name) ? settings[name] : -1;
}
int model_reports() {
  LOCKED;
  return (int)reports.size();
}
void model_report(int number, char* text, int size) {
  LOCKED;
  strncpy(text, reports.at(number).c_str(), size - 1);
}
void model_clear() {
  LOCKED;
  reports.clear();
  counts.clear();
  forget_accesses();
}
long model_count(const char* what) {
  LOCKED;
  return counts[what];
}
}
