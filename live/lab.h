// A lab on this one machine: every rank in a network namespace of its own, at a shaped link (of
// limited bandwidth and added latency).
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
  double latency = 0;      // seconds, one way, added to packets that a rank sends
  double queue = 0.05;     // seconds that a packet may wait in a link's queue before it is dropped
  std::int64_t burst = 0;  // bytes that an idle link passes at once; 0: chosen by rate
};

// One command (ip or tc, with its arguments) run inside a namespace. "tap NAME" makes a network
// device of the lab. Two consecutive ones are a cable: packets pass between them, and those of the
// first are delayed.
struct LabCommand {
  static constexpr int kHub = -1;
  int where = kHub;  // a rank, or the hub
  std::vector<std::string> words;
};

// A file below /proc/sys/net or /sys/class/net; each namespace has its own.
struct LabSetting {
  int where = LabCommand::kHub;
  std::string path;
  std::string value;
};

struct LabPlan {
  std::vector<LabCommand> commands;
  std::vector<LabSetting> settings;  // written after all commands
};

// Returns bytes per second of "1gbit", "2.5gbit", "500mbit" or "64kbit". Throws InputError that
// begins with the second argument.
double lab_rate(const std::string& text, const std::string& what);

// Throws InputError for invalid options, by their names on the command line.
void check_lab(const LabOptions& options);

// Returns the bytes that a link passes at once after it was idle.
std::int64_t lab_burst(const LabOptions& options, double rate);

// Returns the commands and settings, for a machine with this number of processors.
LabPlan plan_lab(const LabOptions& options, int processors);

int lab_group(const LabOptions& options, int rank);
std::string lab_address(int rank);  // IPv4, inside the lab
// Returns a rank's environment: torchrun's variables, and the network interface to use.
std::map<std::string, std::string> lab_environment(const LabOptions& options, int rank);

// Disconnects a rank from its switch, as if its cable were pulled out.
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

// Builds the lab, runs the command in every rank, and takes the lab down. Our standard output is
// rank 0's (that of others is dropped), our standard error that of all. Throws InputError, and
// MachineError if the machine does not permit a lab or lacks its tools.
JobEnd run_lab(const LabRun& run);

// Limits of the ranks' rights on the machine: building the lab needs root, they run without.

// Makes a mount namespace with read-only files of the kernel's configuration (/proc/sys, /sys,
// control groups and more), also at other mounts of them. /dev has no disk, kernel log or memory,
// only terminals, shared memory, accelerators and the likes of /dev/null. User namespaces are
// refused, because in one all of this could be mounted anew. Throws MachineError.
void cover_machine();

// Removes this process's and its children's rights over networks, mounts, modules, devices and
// other users' processes. Under sudo (SUDO_UID, SUDO_GID) it becomes that user again, for good;
// root keeps its rights over files, priorities and locked memory. Throws MachineError.
void drop_rights();

// Returns the variables that name the user whom drop_rights() changes to; empty if it does not.
std::map<std::string, std::string> environment_of_user();

// Returns the path of a system program, from folders that only root can write, not from PATH.
// Throws MachineError if none of them has it.
std::string system_program(const std::string& name);

}  // namespace syncline::live
