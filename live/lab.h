// A lab: every rank in a network namespace of its own, behind a shaped link, on this one machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "live/processes.h"

namespace syncline::live {

struct LabOptions {
  int ranks = 2;
  int groups = 1;          // ranks are assigned to groups in equal blocks
  double rate = 0;         // bytes per second, each way, of every rank's link
  double uplink = 0;       // bytes per second, each way, of every group; with groups > 1
  double latency = 0;      // seconds, one way, added to what a rank sends
  double queue = 0.05;     // seconds that a packet may wait in a link's queue before it is dropped
  std::int64_t burst = 0;  // bytes that an idle link lets through at once; 0: chosen by rate
};

// One command (ip or tc, with its arguments) run inside a namespace. "tap NAME": a network device
// of the lab's own; of two of these, one behind the other, packets go from each to the other, those
// of the first late.
struct LabCommand {
  static constexpr int kHub = -1;
  int where = kHub;  // a rank, or the hub
  std::vector<std::string> words;
};

// A file below /proc/sys/net or /sys/class/net, of which every namespace has its own.
struct LabSetting {
  int where = LabCommand::kHub;
  std::string path;
  std::string value;
};

struct LabPlan {
  std::vector<LabCommand> commands;
  std::vector<LabSetting> settings;  // once the commands have made what is set
};

// "1gbit", "2.5gbit", "500mbit", "64kbit": bytes per second. Throws InputError that begins with
// `what`.
double lab_rate(const std::string& text, const std::string& what);

// Throws InputError, by the names of the verb's options.
void check_lab(const LabOptions& options);

// Bytes that a link lets through at once after it was idle.
std::int64_t lab_burst(const LabOptions& options, double rate);

// For a machine with so many processors.
LabPlan plan_lab(const LabOptions& options, int processors);

int lab_group(const LabOptions& options, int rank);
std::string lab_address(int rank);  // IPv4, inside the lab
// Returns a rank's environment: torchrun's variables, and which network interface to use.
std::map<std::string, std::string> lab_environment(const LabOptions& options, int rank);

// As if the cable of this rank were pulled out of its switch.
struct LabCut {
  int rank = 0;
  double at = 0;  // seconds after the ranks were started
};

struct LabRun {
  LabOptions options;
  std::vector<std::string> command;  // run once per rank
  std::vector<LabCut> cuts;
  ProcessRules rules;  // its acts are ignored
};

// Builds the lab, runs the command in every rank, and takes the lab down. Rank 0's standard output
// goes to ours, that of others nowhere; everybody's standard error to ours. Throws InputError, and
// MachineError where the machine does not permit a lab or lacks what it needs.
JobEnd run_lab(const LabRun& run);

// What the ranks of a lab may do on its machine: the lab needs root to be built, they do not.

// In a mount namespace of its own: what sets the kernel up (/proc/sys, /sys, control groups and
// more) can be read alone, here and wherever it is mounted once more, and /dev has no disk, no
// kernel log and no memory, only terminals, shared memory, accelerators and the likes of /dev/null.
// No user namespace can be made, inside which all of this could be mounted anew. Throws
// MachineError.
void cover_machine();

// Of this process and whatever it starts: nothing over networks, mounts, modules, devices and other
// users' processes is left. Under sudo (SUDO_UID, SUDO_GID) it becomes that user again, for good;
// root itself keeps what it may do with files, priorities and locked memory. Throws MachineError.
void drop_rights();

// What names the user in the environment, where drop_rights() makes it another than it was.
std::map<std::string, std::string> environment_of_user();

// Returns the file of one of the system's programs, from the folders where only root can put one,
// whatever PATH says. Throws MachineError where it is in none of them.
std::string system_program(const std::string& name);

}  // namespace syncline::live
