//go:build lint

package layering_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ordered are the packages whose files have an order in which functions call, or refer to, functions of the same file and of
// files below it only. A rule that calls back up is a decision that belongs to the caller.
var ordered = []string{"processors", "processors/turn"}

func TestFilesOfAPackageCallDownwards(t *testing.T) {
	for _, name := range ordered {
		calls := callsBetweenFiles(t, name)
		pairs := len(calls)
		require.Greater(t, pairs, 50, name)
		require.Empty(t, withoutOrder(calls), "%s: these of the %d pairs of files call each other in circles", name, pairs)
	}
}

// filePair says that functions of one file refer to functions of another one.
type filePair struct{ from, to string }

// withoutOrder returns the pairs that are left when files that call no other, and files that no other calls, are taken away until
// there are none.
func withoutOrder(calls map[filePair][]string) (left []string) {
	for before := 0; before != len(calls); {
		before = len(calls)
		callers, called := map[string]bool{}, map[string]bool{}
		for pair := range calls {
			callers[pair.from], called[pair.to] = true, true
		}
		maps.DeleteFunc(calls, func(pair filePair, _ []string) bool { return !callers[pair.to] || !called[pair.from] })
	}
	for pair, names := range calls {
		slices.Sort(names)
		left = append(left, pair.from+" calls "+strings.Join(slices.Compact(names), ", ")+" of "+pair.to)
	}
	slices.Sort(left)
	return left
}

func TestCirclesOfFilesAreFound(t *testing.T) {
	require.Empty(t, withoutOrder(map[filePair][]string{{"a", "b"}: {"f"}, {"a", "c"}: {"f"}, {"b", "c"}: {"g"}}))
	require.Equal(t, []string{"b calls f, g of c", "c calls h of b"}, withoutOrder(map[filePair][]string{
		{"a", "b"}: {"f"}, {"b", "c"}: {"g", "f", "g"}, {"c", "b"}: {"h"}, {"c", "d"}: {"i"},
	}))
}

// callsBetweenFiles returns the names of the functions and methods of a package that its files refer to, by the files in which
// they are used and declared, without tests and generated files.
func callsBetweenFiles(t *testing.T, name string) map[filePair][]string {
	files := token.NewFileSet()
	var parsed []*ast.File
	generated := map[string]bool{}
	fileOf := func(at token.Pos) string { return filepath.Base(files.Position(at).Filename) }
	listing := run(t, root, "go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, "./"+name)
	for _, path := range strings.Fields(string(listing)) {
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		require.NoError(t, err)
		parsed, generated[fileOf(file.Package)] = append(parsed, file), ast.IsGenerated(file)
	}
	exported := map[string]string{} // the compiler's export data of the packages that are imported
	for line := range strings.Lines(string(run(t, root, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+name))) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exported[path] = file
	}
	conf := types.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exported[path])
	})}
	refers := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := conf.Check(module+"/"+name, files, parsed, refers)
	require.NoError(t, err)

	calls := map[filePair][]string{}
	for ident, object := range refers.Uses {
		f, ok := object.(*types.Func)
		if !ok || f.Pkg() != pkg {
			continue
		}
		pair := filePair{fileOf(ident.Pos()), fileOf(f.Origin().Pos())}
		if pair.from != pair.to && !generated[pair.from] && !generated[pair.to] {
			calls[pair] = append(calls[pair], f.Name())
		}
	}
	return calls
}
