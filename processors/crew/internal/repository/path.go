package repository

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// pathLimit is the longest path in characters.
const pathLimit = 500

// everything ends a path that stands for everything below a directory.
const everything = "/*"

// ErrPath is wrapped by the errors of Path.
var ErrPath = errors.New("the path cannot be locked")

var errAbsolute = fmt.Errorf("%w: it is absolute; name it relative to the repository's root", ErrPath)

// Path returns a path of a repository as locks and commits have it: relative to the repository's root, with slashes, without
// "." and doubled slashes, in Unicode's NFC. Case is kept: on a file system that ignores it, "A" and "a" are two locks of one
// file. A path that leaves the repository, is absolute, belongs to git itself or has a NUL is refused, and so are the empty path,
// the whole repository and paths of more than 500 characters. Backslashes are slashes.
func Path(raw string) (string, error) {
	p := strings.ReplaceAll(raw, `\`, "/")
	switch {
	case raw == "":
		return "", fmt.Errorf("%w: it is empty", ErrPath)
	case utf8.RuneCountInString(raw) > pathLimit:
		return "", fmt.Errorf("%w: it has more than %d characters", ErrPath, pathLimit)
	case strings.ContainsRune(raw, 0) || !utf8.ValidString(raw):
		return "", fmt.Errorf("%w: it is no text", ErrPath)
	case strings.HasPrefix(p, "/"):
		return "", errAbsolute
	}
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "..":
			return "", fmt.Errorf(`%w: it contains ".."`, ErrPath)
		case strings.EqualFold(part, ".git"):
			return "", fmt.Errorf("%w: it belongs to git", ErrPath)
		}
	}
	p = norm.NFC.String(path.Clean(p))
	switch {
	case len(p) > 1 && p[1] == ':' && isLetter(p[0]): // a drive, also after "./"
		return "", errAbsolute
	case p == "." || p == "*":
		return "", fmt.Errorf("%w: it is the whole repository; name a file, or a directory as dir/*", ErrPath)
	case utf8.RuneCountInString(p) > pathLimit: // NFC makes a few characters two
		return "", fmt.Errorf("%w: it has more than %d characters", ErrPath, pathLimit)
	}
	return p, nil
}

// path returns a path that an agent names. It is relative to the agent's directory, or absolute and in the agent's work tree.
func (a *Agent) path(raw string) (string, error) {
	p := strings.ReplaceAll(raw, `\`, "/")
	switch {
	case raw == "":
	case !path.IsAbs(p):
		if a.GetBelow() != "" {
			return Path(a.GetBelow() + "/" + p)
		}
	case a.GetRoot() != "":
		if rest, ok := strings.CutPrefix(p, strings.TrimSuffix(a.GetRoot(), "/")+"/"); ok {
			return Path(rest)
		}
		if rest, ok := strings.CutPrefix(p, a.GetCwd()+"/"); ok && a.GetCwd() != "" { // behind a symbolic link
			return Path(strings.TrimPrefix(a.GetBelow()+"/"+rest, "/"))
		}
	}
	return Path(raw)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// overlap reports whether there can be a file that both paths cover, or the paths are equal.
func overlap(a, b string) bool { return a == b || covers(a, b) || covers(b, a) }

// covers reports whether a path stands for everything below a directory that another path is below.
func covers(a, b string) bool {
	return strings.HasSuffix(a, everything) && strings.HasPrefix(b, a[:len(a)-1])
}
