// Package git commits the files that an agent has locked, and no others, in a work tree that several agents share.
//
// Commit does what `git commit -- FILES` does, with these differences:
//
//   - It uses an index of its own, so it neither commits nor loses what other agents have staged, and commits of several agents
//     do not wait for one index lock. Afterwards it brings the files' entries of the shared index up to date.
//   - Before the branch is moved, the new tree is compared with the old one. A commit with a change of any other file fails.
//   - The branch moves only from the commit that the new one was made on. If another commit came first, Commit starts again.
//   - The message has a trailer with the ID of the action. A repeat finds the trailer and returns the same commit.
//     An agent that runs git itself can forge the trailer. A commit with files that are not locked is never taken for the action's.
//   - No hooks run: neither those of commits nor the signature that commit.gpgSign asks for. Filters, such as Git LFS, do run.
//
// Programs are called with lists of arguments, without a shell, and paths are literal. A path stands for each file whose name is
// the same in Unicode's NFC, so a file whose name is in NFD is found. The caller's environment variables with
// the prefix GIT_ are not passed on.
//
// A directory without "/*" is no file: it is not committed. A submodule is committed if its own path is held; a repository
// inside of the work tree that is no submodule yet is left out. Ignored files are left out. Work trees with a sparse checkout
// and with a merge in progress are refused.
package git
