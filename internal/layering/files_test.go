//go:build lint

package layering_test

import (
	"fmt"
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

// mostUpward is how many ordered pairs of files of a package may run back up, in the order of its files that has the fewest.
var mostUpward = map[string]int{"processors": 7, "processors/turn": 54}

func TestFilesOfAPackageCallDownwards(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(mostUpward)) {
		g := callsBetweenFiles(t, name)
		var upward []string
		for _, pair := range g.upward() {
			upward = append(upward, fmt.Sprintf("%s calls %s", pair, strings.Join(slices.Sorted(maps.Keys(g[pair.from][pair.to])), ", ")))
		}
		t.Logf("%s: of the %d pairs of files %d run back up, at most %d may:\n%s",
			name, g.pairs(), len(upward), mostUpward[name], strings.Join(upward, "\n"))
		require.LessOrEqual(t, len(upward), mostUpward[name], name)
	}
}

func TestFewestPairsThatRunBackUpAreFound(t *testing.T) {
	calls := fileCalls{}
	for from, to := range map[string]string{"a": "b", "b": "c d", "c": "a", "d": "b e", "e": "", "f": "a e"} {
		calls[from] = map[string]map[string]bool{}
		for _, name := range strings.Fields(to) {
			calls[from][name] = map[string]bool{"f": true}
		}
	}
	require.Equal(t, 8, calls.pairs())
	require.Len(t, calls.upward(), 2, "one of a to b to c, and one of b to d")
}

// filePair says that functions of one file call or refer to functions of another one.
type filePair struct{ from, to string }

func (p filePair) String() string { return p.from + " -> " + p.to }

// fileCalls has the names of the functions and methods that each file refers to, by the file that declares them.
type fileCalls map[string]map[string]map[string]bool

// callsBetweenFiles are those of a package, without tests and generated files.
func callsBetweenFiles(t *testing.T, name string) fileCalls {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	listing := run(t, root, "go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, "./"+name)
	for _, path := range strings.Fields(string(listing)) {
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(run(t, root, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+name))) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[path] = file
	}
	refers := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})}
	_, err := conf.Check(module+"/"+name, files, parsed, refers)
	require.NoError(t, err)

	calls := fileCalls{}
	for _, file := range parsed {
		if !ast.IsGenerated(file) {
			calls[filepath.Base(files.Position(file.Package).Filename)] = map[string]map[string]bool{}
		}
	}
	for ident, object := range refers.Uses {
		f, ok := object.(*types.Func)
		if !ok || f.Pkg() == nil || f.Pkg().Path() != module+"/"+name {
			continue
		}
		from, to := filepath.Base(files.Position(ident.Pos()).Filename), filepath.Base(files.Position(f.Origin().Pos()).Filename)
		if calls[from] == nil || calls[to] == nil || from == to {
			continue
		}
		if calls[from][to] == nil {
			calls[from][to] = map[string]bool{}
		}
		calls[from][to][f.Name()] = true
	}
	return calls
}

func (g fileCalls) pairs() (n int) {
	for _, to := range g {
		n += len(to)
	}
	return n
}

// upward returns the pairs that run back up in the order of the files that has the fewest: callers are above. The order is found
// by moving files to better places, from two beginnings, until no move of a run of files helps.
func (g fileCalls) upward() []filePair {
	var best []filePair
	for i, order := range [][]string{slices.Sorted(maps.Keys(g)), g.byCalls()} {
		for g.improve(order) {
		}
		if found := g.upwardIn(order); i == 0 || len(found) < len(best) {
			best = found
		}
	}
	return best
}

// byCalls sorts the files by how many more files they call than call them.
func (g fileCalls) byCalls() []string {
	more := map[string]int{}
	for from, all := range g {
		for to := range all {
			more[from]++
			more[to]--
		}
	}
	return slices.SortedFunc(maps.Keys(g), func(a, b string) int {
		if more[a] != more[b] {
			return more[b] - more[a]
		}
		return strings.Compare(a, b)
	})
}

// improve moves one run of files to the place where the fewest pairs run back up. It reports whether that are fewer than before.
func (g fileCalls) improve(order []string) bool {
	gain := func(file string, passed string, down bool) (n int) { // by moving file past another one
		above, below := file, passed
		if !down {
			above, below = passed, file
		}
		if _, ok := g[below][above]; ok {
			n++
		}
		if _, ok := g[above][below]; ok {
			n--
		}
		return n
	}
	for length := 1; length <= len(order)/2; length++ {
		for first := 0; first+length <= len(order); first++ {
			run := order[first : first+length]
			for _, down := range []bool{true, false} {
				total, most, to := 0, 0, first
				step := func(at, place int) {
					for _, file := range run {
						total += gain(file, order[at], down)
					}
					if total > most {
						most, to = total, place
					}
				}
				if down {
					for at := first + length; at < len(order); at++ {
						step(at, at-length+1)
					}
				} else {
					for at := first - 1; at >= 0; at-- {
						step(at, at)
					}
				}
				if most > 0 {
					moved := slices.Clone(run)
					rest := slices.Concat(order[:first], order[first+length:])
					copy(order, slices.Insert(rest, to, moved...))
					return true
				}
			}
		}
	}
	return false
}

func (g fileCalls) upwardIn(order []string) (pairs []filePair) {
	place := map[string]int{}
	for i, name := range order {
		place[name] = i
	}
	for _, from := range order {
		for _, to := range slices.Sorted(maps.Keys(g[from])) {
			if place[to] < place[from] {
				pairs = append(pairs, filePair{from, to})
			}
		}
	}
	return pairs
}
