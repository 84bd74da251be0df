package permission

import (
	"path"
	"regexp"
	"strings"
)

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
