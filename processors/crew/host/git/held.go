package git

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// everything ends a path that stands for everything below a directory.
const everything = "/*"

// held are the paths that an agent has locked.
type held []string

// covers reports whether a file is one that the agent may commit.
func (h held) covers(file string) bool {
	return slices.ContainsFunc(h, func(p string) bool { return coveredBy(p, file) })
}

func coveredBy(path, file string) bool {
	if dir, ok := strings.CutSuffix(path, everything); ok {
		return strings.HasPrefix(file, dir+"/")
	}
	return path == file
}

// specs returns the paths as literal pathspecs of git. That of a directory ends in a slash, so that it is no file.
func (h held) specs() []string {
	specs := make([]string, len(h))
	for i, p := range h {
		specs[i] = p
		if dir, ok := strings.CutSuffix(p, everything); ok {
			specs[i] = dir + "/"
		}
	}
	return specs
}

// without returns the paths that cover none of the files.
func (h held) without(files []string) (none []string) {
	for _, p := range h {
		if !slices.ContainsFunc(files, func(f string) bool { return coveredBy(p, f) }) {
			none = append(none, p)
		}
	}
	return none
}

// check returns an error if a path leaves the work tree, by its name or by a symbolic link. It is checked before git is called
// because git tells nothing about some of these paths.
func (h held) check(top string) error {
	for _, p := range h {
		parent := filepath.Dir(filepath.FromSlash(p)) // of dir/*, the directory itself
		if !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsRune(p, 0) {
			return fmt.Errorf("%q is no path in the repository", p)
		}
		for ; parent != "."; parent = filepath.Dir(parent) {
			// What cannot be read, or does not exist, is git's to judge.
			if info, err := os.Lstat(filepath.Join(top, parent)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return fmt.Errorf("%q is behind the symbolic link %q", p, filepath.ToSlash(parent))
			}
		}
	}
	return nil
}

// batches divides paths so that each part fits into the arguments of a call.
func batches(paths []string) (parts [][]string) {
	size := argumentLimit
	for _, p := range paths {
		if size += len(p) + 1; size > argumentLimit {
			parts, size = append(parts, nil), len(p)+1
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], p)
	}
	return parts
}

// split returns the parts of git's output with -z.
func split(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// joined is the input of git for -z.
func joined(paths []string) []byte {
	return []byte(strings.Join(paths, "\x00") + "\x00")
}
