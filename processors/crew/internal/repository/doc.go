// Package repository keeps the locks and the commits of the repositories in which agents work. Its group has one row for each
// repository, because a lock on a directory conflicts with locks on the files in it: one row decides about all of them.
//
// # Locks
//
// An agent locks a path with LOCK_FILE and releases it with UNLOCK_FILE. A path that ends in "/*" is everything below a
// directory, but not the directory. Paths are normalised by Path, so that two ways to write a path are one lock. Agents of all
// crews and projects share the locks of a repository. A lock that is denied is not waited for.
//
// A lock expires after LockTTL. Whatever its agent does extends it. Each lock has a fencing token, which rises with every
// lock of the repository. When an agent ends, or its lead takes its task back, its locks are released.
//
// A lock is released only if its files have no changes that are in no commit. The agent's host is asked. If the host cannot
// tell, because git fails, the lock is released; if the host is silent for 20 seconds, the lock is kept. A person may release
// any lock. If the path is part of an open commit, it is free with the commit's receipt, or 11 minutes after the host was asked
// to make the commit: the host does not make a commit that it was asked for more than 10 minutes ago.
//
// # Commits
//
// COMMIT commits the paths that the agent has locked, and nothing else. The agent's host does it, see package git. Until its
// receipt, the locks neither expire nor can another agent take them, so a commit contains no file that its agent does not hold.
// That holds for paths that a person releases meanwhile, too, if the clocks of hosts and brokers differ by less than 30 seconds.
// If the host is restarted, it gets the action again, and finds out whether the commit was made before. A second COMMIT, and
// an UNLOCK_FILE of a path in the commit, wait for the receipt. The locks are kept after the commit.
//
// # Results
//
// The agent gets an answer as a note. Its crew gets crewbody.LockChanged and crewbody.Committed. Events are lock:acquired, lock:released,
// lock:expired, lock:denied and agent:committed. An extended lock causes no event.
package repository
