package git

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// everything ends a path that stands for everything below a directory.
const everything = "/*"

// held are the paths that an agent has locked.
type held []string

// covers reports whether a file is one that the agent may commit.
func (h held) covers(file string) bool {
	return slices.ContainsFunc(h, func(p string) bool { return coveredBy(p, file) })
}

// coveredBy compares paths in Unicode's NFC, in which they are locked. The name of the file itself can have another form: systems
// such as Linux keep names as they are written.
func coveredBy(path, file string) bool {
	path, file = norm.NFC.String(path), norm.NFC.String(file)
	if dir, ok := strings.CutSuffix(path, everything); ok {
		return strings.HasPrefix(file, dir+"/")
	}
	return path == file
}

// specs returns the paths as literal pathspecs of git. That of a directory ends in a slash, so that it is no file. The names of
// files can have another form of Unicode than the paths, so a path with other characters than those of ASCII is no pathspec:
// above has the directory above the first of them, in which the covered files are to be looked for.
func (h held) specs() (specs, above []string) {
	for _, p := range h {
		other := strings.IndexFunc(p, func(r rune) bool { return r >= utf8.RuneSelf })
		dir, ok := strings.CutSuffix(p, everything)
		switch {
		case other >= 0:
			above = append(above, cmp.Or(p[:strings.LastIndexByte(p[:other], '/')+1], "."))
		case ok:
			specs = append(specs, dir+"/")
		default:
			specs = append(specs, p)
		}
	}
	slices.Sort(above)
	return specs, slices.Compact(above)
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
