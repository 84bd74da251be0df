//go:build lint

package layering_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn"
)

// document returns the text of a file of the module.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// documents are the Markdown files of the module, by their paths.
func documents(t *testing.T) (names []string) {
	t.Helper()
	top := root
	require.NoError(t, fs.WalkDir(os.DirFS(top), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return nil
	}))
	require.Contains(t, names, "README.md")
	return names
}

func TestREADMEShowsTheMinimalProgram(t *testing.T) {
	_, block, found := strings.Cut(document(t, "README.md"), "```go\n")
	require.True(t, found)
	block, _, found = strings.Cut(block, "```\n")
	require.True(t, found)
	_, code, found := strings.Cut(document(t, "examples/minimal/main.go"), "package main\n")
	require.True(t, found)
	require.Equal(t, "package main\n"+code, block)
}

func TestPackageDocumentationNamesEveryOption(t *testing.T) {
	for _, dir := range []string{
		"processors", "processors/turn", "processors/fold/folder", "processors/fold",
		"processors/gate",
	} {
		doc := document(t, path.Join(dir, "doc.go"))
		for _, option := range options(t, dir) {
			require.Regexp(t, `\b`+option+`\b`, doc, "%s does not name %s", dir, option)
		}
	}
}

func TestProcessingREADMENamesEveryVariable(t *testing.T) {
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
	page := document(t, "examples/processing/README.md")
	for _, name := range names {
		if name != "KAFKA_" {
			require.Contains(t, page, "`"+name, name)
		}
	}
}

func TestDocumentsLinkToFilesThatExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	for _, name := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(document(t, name), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			target := filepath.Join(root, path.Dir(name), match[1])
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", name, match[1])
		}
	}
}

var update = flag.Bool("update", false, "write the map of the folders")

// The map has the first sentence of each package's comment. go test -tags lint ./internal/layering -run Map -update writes it.
func TestMapOfTheFoldersHasTheCommentsOfPackages(t *testing.T) {
	page := document(t, "internal/README.md")
	before, rest, found := strings.Cut(page, "| folder | content |\n|---|---|\n")
	require.True(t, found)
	end := strings.Index(rest, "\n\n") + 1
	want := folderMap(t)
	if *update {
		text := before + "| folder | content |\n|---|---|\n" + want + rest[end:]
		require.NoError(t, os.WriteFile(filepath.Join(root, "internal/README.md"), []byte(text), 0o644))
		return
	}
	require.Equal(t, want, rest[:end])
}

func folderMap(t *testing.T) string {
	var rows strings.Builder
	for line := range strings.Lines(string(run(t, root, "go", "list", "-tags", "lint", "-f", "{{.ImportPath}} {{.Doc}}", "./..."))) {
		importPath, doc, _ := strings.Cut(strings.TrimSpace(line), " ")
		name := nameOf(importPath)
		if path.Dir(name) == "internal/rows" {
			continue // one for each capability with a table
		}
		require.NotEmpty(t, doc, "%s has no comment", name)
		_, doc, _ = strings.Cut(strings.TrimPrefix(doc, "Package "), " ") // without the package's name
		if brief, _, ok := strings.Cut(doc, ": "); ok && len(doc) > 120 {
			doc = brief
		}
		fmt.Fprintf(&rows, "| `%s/` | %s |\n", name, strings.TrimSuffix(doc, "."))
	}
	return rows.String()
}

func TestFoldersThatDocumentsNameExist(t *testing.T) {
	for _, match := range regexp.MustCompile("`((?:codec|topics|processors|internal|examples)/[a-z/]*)`").
		FindAllStringSubmatch(document(t, "internal/README.md"), -1) {
		require.DirExists(t, filepath.Join(root, match[1]))
	}
}

// A step of the path of a record: a file, and the functions in it that the step names.
var step = regexp.MustCompile(`((?:internal|processors)/[a-z/]+\.go)\s+((?:\w+\.)?\w+)`)

func TestArchitecturePageNamesFunctionsThatExist(t *testing.T) {
	_, path, found := strings.Cut(document(t, "internal/README.md"), "## The path of a record")
	require.True(t, found)
	path, _, _ = strings.Cut(path, "## The runtime under Goka")
	steps := step.FindAllStringSubmatch(path, -1)
	require.GreaterOrEqual(t, len(steps), 10)
	for _, match := range steps {
		require.Contains(t, functions(t, match[1]), match[2], match[1])
	}
}

// functions are the names of a file's functions; those of methods begin with their type.
func functions(t *testing.T, name string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		switch {
		case !ok:
		case f.Recv == nil:
			names = append(names, f.Name.Name)
		default:
			names = append(names, typeName(f.Recv.List[0].Type)+"."+f.Name.Name)
		}
	}
	return names
}

// options are the exported functions of a package whose name begins with With.
func options(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		relative, err := filepath.Rel(root, name)
		require.NoError(t, err)
		for _, f := range functions(t, relative) {
			if strings.HasPrefix(f, "With") && !slices.Contains(names, f) {
				names = append(names, f)
			}
		}
	}
	return names
}
