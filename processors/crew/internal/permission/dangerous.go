package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/crewbody"
)

// dangerous reports whether every such call needs a person's decision: an approval never counts for later ones. It recognizes
// what is destructive in the common ways to write it. It is no sandbox: a command can be hidden from it. A call that cannot be read is dangerous.
func (c call) dangerous() bool {
	if c.broken || c.meta[crewbody.Shortened] != nil { // what cannot be seen
		return true
	}
	texts := c.texts()
	return slices.ContainsFunc(texts, destroysData) || c.runsCommands() && slices.ContainsFunc(texts, destructive) ||
		c.deletes() && slices.ContainsFunc(texts, func(text string) bool {
			return slices.ContainsFunc(append(strings.Fields(text), text), critical)
		})
}

// runsCommands reports whether the tool is a shell. A tool that takes a command is one, whatever it is called.
func (c call) runsCommands() bool {
	return c.command() != "" || c.named("shell", "bash", "terminal", "exec")
}

var removes = regexp.MustCompile(`(?i)(?:^|[^a-z])rm(?:$|[^a-z])`)

// deletes reports whether the tool deletes files.
func (c call) deletes() bool {
	return c.named("delete", "remove") || removes.MatchString(c.metaName()) || removes.MatchString(c.kind)
}

// named reports whether one of the names of the tool has one of the parts.
func (c call) named(parts ...string) bool {
	names := strings.ToLower(c.metaName() + "\x00" + c.kind + "\x00" + c.method)
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(names, part) })
}

// texts returns all texts in the input, and lists of texts also as the command that they are. An agent that sends no input
// often has the command in the title, and the path among the locations.
func (c call) texts() (texts []string) {
	texts = textsOf(texts, decoded(c.rawInput))
	if input, ok := decoded(c.rawInput).(map[string]any); ok {
		if command, ok := input["command"].(string); ok {
			if args, ok := input["args"].([]any); ok {
				texts = append(texts, strings.Join(append([]string{command}, stringsOf(args)...), " "))
			}
		}
	}
	texts = textsOf(texts, decoded(c.locations))
	if c.rawInput == nil {
		texts = textsOf(append(texts, c.title), decoded(c.content))
	}
	return texts
}

func decoded(raw []byte) (v any) {
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// textsOf appends all texts in a value. Their order does not matter.
func textsOf(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(texts, v)
	case []any:
		if words := stringsOf(v); len(words) > 1 {
			texts = append(texts, strings.Join(words, " "))
		}
		for _, e := range v {
			texts = textsOf(texts, e)
		}
	case map[string]any:
		for _, e := range v {
			texts = textsOf(texts, e)
		}
	}
	return texts
}

func stringsOf(list []any) (words []string) {
	for _, e := range list {
		if word, ok := e.(string); ok {
			words = append(words, word)
		}
	}
	return words
}

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
	"chmod":   func(args []string) bool { return slices.ContainsFunc(args, everyone.MatchString) },
	"pkill":   func([]string) bool { return true },
	"killall": func([]string) bool { return true },
}

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

var (
	sqlComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	sqlLine    = regexp.MustCompile(`--[^\n]*`)
	sqlDrops   = regexp.MustCompile("(?i)\\bdrop\\s+(?:table|database)\\b|\\btruncate\\s+(?:table\\s+)?[\"'`\\[]?[a-z_]")
	sqlDeletes = regexp.MustCompile(`(?i)\bdelete\s+from\b[^;]*`)
	sqlWhere   = regexp.MustCompile(`(?i)\bwhere\b`)
)

// destroysData reports whether a text has SQL that drops or truncates, or deletes without a condition. Some databases execute
// comments, so SQL counts with and without them.
func destroysData(text string) bool {
	for _, sql := range []string{text, sqlComment.ReplaceAllString(text, " ")} {
		if sqlDrops.MatchString(sql) {
			return true
		}
		for _, statement := range sqlDeletes.FindAllString(sql, -1) {
			condition := sqlLine.ReplaceAllString(sqlComment.ReplaceAllString(statement, " "), "")
			if !sqlWhere.MatchString(condition) {
				return true
			}
		}
	}
	return false
}

// criticalFile matches the names of files that a project cannot do without: secrets, what it depends on, how it is built and
// deployed, and data.
var criticalFile = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`\.env.*`,
	`package(?:-lock)?\.json`, `npm-shrinkwrap\.json`, `yarn\.lock`, `pnpm-lock\.yaml`,
	`requirements.*\.txt`, `pipfile(?:\.lock)?`, `pyproject\.toml`, `poetry\.lock`, `setup\.(?:py|cfg)`,
	`gemfile(?:\.lock)?`, `cargo\.(?:toml|lock)`, `go\.(?:mod|sum|work)`, `pom\.xml`,
	`(?:build|settings)\.gradle(?:\.kts)?`, `gradle\.lockfile`, `.*\.(?:csproj|sln)`,
	`dockerfile.*`, `(?:docker-)?compose.*\.ya?ml`, `(?:gnu)?makefile`, `.*\.(?:sqlite3?|db)`,
}, "|") + `)$`)

var workflow = regexp.MustCompile(`(?:^|/)(?:\.github|\.gitea|\.forgejo)/workflows/[^/]+\.ya?ml$`)

// critical reports whether a path is that of such a file.
func critical(file string) bool {
	file = strings.ToLower(strings.ReplaceAll(file, `\`, "/"))
	return criticalFile.MatchString(path.Base(file)) || workflow.MatchString(file)
}
