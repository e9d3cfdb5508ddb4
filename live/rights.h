// What the ranks of a lab may do on its machine: the lab needs root to be built, they do not.
#pragma once

#include <map>
#include <string>

namespace syncline::live {

// In a mount namespace of its own: what sets the kernel up (/proc/sys, /sys, control groups and
// more) can be read alone, and /dev has no disk, no kernel log and no memory, only terminals,
// shared memory, accelerators and the likes of /dev/null. Throws MachineError.
void cover_machine();

// Of this process and whatever it starts: nothing over networks, mounts, modules, devices and other
// users' processes is left. Under sudo (SUDO_UID, SUDO_GID) it becomes that user again, for good;
// root itself keeps what it may do with files, priorities and locked memory. Throws MachineError.
void drop_rights();

// What names the user in the environment, where drop_rights() makes it another than it was.
std::map<std::string, std::string> environment_of_user();

// The file of one of the system's programs, from the folders where only root can put one, whatever
// PATH says. Throws MachineError where it is in none of them.
std::string system_program(const std::string& name);

}  // namespace syncline::live
