//go:build lint

package layering_test

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// unstable is the module whose types the exported API does not use: it has no release, so that an update of it could
// break users.
const unstable = "github.com/go-json-experiment/json"

func TestExportedAPIUsesNoTypeOfAnUnreleasedModule(t *testing.T) {
	for name, texts := range exportedAPI(t) {
		if slices.Contains(shown, name) {
			continue
		}
		for _, text := range texts {
			require.NotContains(t, text, unstable, name)
		}
	}
}

func TestExportedAPIUsesNoInternalType(t *testing.T) {
	for name, texts := range exportedAPI(t) {
		if slices.Contains(shown, name) {
			continue
		}
		for _, text := range texts {
			require.NotContains(t, text, "/internal/", "%s: a user cannot read the documentation of an internal type", name)
		}
	}
}

// exportedAPI describes the exported identifiers of every public package.
func exportedAPI(t *testing.T) map[string][]string {
	t.Helper()
	api, err := exported()
	require.NoError(t, err)
	require.Contains(t, api, "processors")
	return api
}

var exported = sync.OnceValues(func() (map[string][]string, error) {
	listing, err := output(nil, root, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	if err != nil {
		return nil, err
	}
	files := map[string]string{} // export data by import path
	for line := range strings.Lines(string(listing)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[name] = file
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(files[name])
	})
	api := map[string][]string{}
	for name := range files {
		own := nameOf(name)
		if own == name || strings.Contains("/"+own+"/", "/internal/") || under("examples")(own) {
			continue
		}
		p, err := imports.Import(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		api[own] = exportedTypes(p)
	}
	return api, nil
})

// shown are the packages that export their transitions or tables, with rows, for other packages and their tests.
var shown = []string{
	"processors/turn", "processors/delivery", "processors/delegation",
}

// exportedTypes describes the type of every exported function, variable, field and method of a package, and what its
// aliases stand for.
func exportedTypes(p *types.Package) (list []string) {
	add := func(o types.Object) {
		if o.Exported() {
			list = append(list, o.Name()+" "+types.TypeString(types.Unalias(o.Type()), nil))
		}
	}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		named, ok := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !isType || !ok {
			add(o)
			continue
		}
		if !o.Exported() {
			continue
		}
		for m := range named.Methods() {
			add(m)
		}
		if fields, ok := named.Underlying().(*types.Struct); ok {
			for f := range fields.Fields() {
				add(f)
			}
			continue
		}
		list = append(list, name+" "+types.TypeString(named.Underlying(), nil))
	}
	return list
}
