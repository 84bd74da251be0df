package permission

import (
	"path"
	"regexp"
	"strings"
)

var (
	// unquote makes a command that is quoted or escaped look like one that is not.
	unquote = strings.NewReplacer("\\\r\n", " ", "\\\n", " ", "${IFS}", " ", "$IFS", " ", `"`, "", "'", "", `\`, "")
	// between separates simple commands.
	between = regexp.MustCompile("[;&|\r\n()`]+")

	shells   = `(?:ba|z|da|k|a|fi|c|tc)?sh\b`
	fetched  = regexp.MustCompile(`(?s)\b(?:curl|wget)\b.*\|&?\s*(?:\w+=\S*\s+|(?:sudo|env|exec|nohup|command)\s+(?:-\S+\s+)*|\S*/)*` + shells)
	fetching = regexp.MustCompile("(?s)\\b(?:" + shells + "|eval|source)\\b.*(?:<\\(|\\$\\(|`)\\s*(?:curl|wget)\\b")

	shortFlags = regexp.MustCompile(`^-[a-zA-Z]+$`)
	everyone   = regexp.MustCompile(`^[0-7]?777$|^(?:a|ugo)?[+=]rwx$`)
)

// destructive reports whether a command removes a tree outside /tmp, or a file that a project needs, rewrites the history of a
// remote, runs what it downloads, ends processes by name, or opens files to everyone.
func destructive(command string) bool {
	command = unquote.Replace(command)
	if fetched.MatchString(command) || fetching.MatchString(command) {
		return true
	}
	for _, simple := range between.Split(command, -1) {
		words := strings.Fields(simple)
		for i, word := range words {
			if check := checks[path.Base(word)]; check != nil && check(words[i+1:]) {
				return true
			}
		}
	}
	return false
}

// checks are the commands that can be destructive, with what decides it by their arguments.
var checks = map[string]func(args []string) bool{
	"rm":      removesMuch,
	"unlink":  removesMuch,
	"git":     forcesPush,
	"chmod":   opensToAll,
	"pkill":   always,
	"killall": always,
}

func always([]string) bool { return true }

// removesMuch reports whether rm removes a critical file, or recursively and with force an absolute path outside /tmp. Flags
// count at any place, as in GNU's rm. A path that begins with a variable or with ~ counts as absolute.
func removesMuch(args []string) bool {
	var recursive, force, outside bool
	for _, arg := range args {
		switch {
		case arg == "--recursive":
			recursive = true
		case arg == "--force":
			force = true
		case shortFlags.MatchString(arg):
			recursive = recursive || strings.ContainsAny(arg, "rR")
			force = force || strings.Contains(arg, "f")
		case critical(arg):
			return true
		case strings.HasPrefix(arg, "/"):
			clean := path.Clean(arg)
			outside = outside || clean != "/tmp" && !strings.HasPrefix(clean, "/tmp/")
		case strings.HasPrefix(arg, "~"), strings.HasPrefix(arg, "$"):
			outside = true
		}
	}
	return recursive && force && outside
}

// forcesPush reports whether git pushes with force: a flag, or a reference that begins with a plus sign.
func forcesPush(args []string) bool {
	pushes := false
	for _, arg := range args {
		switch {
		case arg == "push":
			pushes = true
		case !pushes:
		case strings.HasPrefix(arg, "--force"), arg == "--mirror", len(arg) > 1 && arg[0] == '+',
			shortFlags.MatchString(arg) && strings.Contains(arg, "f"):
			return true
		}
	}
	return false
}

func opensToAll(args []string) bool {
	for _, arg := range args {
		if everyone.MatchString(arg) {
			return true
		}
	}
	return false
}
