package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn"
)

const root = "../.."

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	return string(text)
}

func TestREADMEShowsThisProgram(t *testing.T) {
	_, block, found := strings.Cut(readme(t), "```go\n")
	require.True(t, found)
	block, _, found = strings.Cut(block, "```\n")
	require.True(t, found)

	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, code, found := strings.Cut(string(program), "package main\n")
	require.True(t, found)
	require.Equal(t, "package main\n"+code, block)
}

func TestREADMENamesEveryOptionAndNoOther(t *testing.T) {
	text := readme(t)
	var want []string
	for _, dir := range []string{"processors", "processors/turn"} {
		want = append(want, options(t, dir)...)
	}
	got := regexp.MustCompile("`((?:processors|turn)\\.With\\w+)`").FindAllStringSubmatch(text, -1)
	named := make(map[string]bool)
	for _, match := range got {
		named[match[1]] = true
		require.Contains(t, want, match[1])
	}
	for _, option := range want {
		require.True(t, named[option], option)
	}
}

func TestREADMENamesEveryVariable(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "examples/processing/*.go"))
	require.NoError(t, err)
	names := turn.EnvironmentNames()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		program, err := os.ReadFile(file)
		require.NoError(t, err)
		names = append(names, regexp.MustCompile(`\b[A-Z]+(?:_[A-Z]+)+\b`).FindAllString(string(program), -1)...)
	}
	for _, name := range names {
		if name != "KAFKA_" {
			require.Contains(t, readme(t), "`"+name, name)
		}
	}
}

func TestREADMENamesWhatIsThere(t *testing.T) {
	text := readme(t)
	for _, match := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(match[1], "://") {
			require.FileExists(t, filepath.Join(root, match[1], firstFile(t, match[1])))
		}
	}
	for _, match := range regexp.MustCompile("`((?:codec|topics|processors|internal|examples)/[a-z/]*)`").
		FindAllStringSubmatch(text, -1) {
		require.DirExists(t, filepath.Join(root, match[1]))
	}
	// Every package stands in the file map.
	require.NoError(t, fs.WalkDir(os.DirFS(root), "internal", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path.Dir(name) == "internal" {
			require.True(t, strings.Contains(text, "`"+name+"/`"), name)
		}
		return err
	}))
}

func firstFile(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, dir))
	require.NoError(t, err)
	for _, e := range entries {
		if !e.IsDir() {
			return e.Name()
		}
	}
	return ""
}

// options are the exported functions of a package whose name begins with With.
func options(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "With") {
				names = append(names, path.Base(dir)+"."+f.Name.Name)
			}
		}
	}
	return names
}
