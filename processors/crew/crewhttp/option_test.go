package crewhttp

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWrongOptionsAreReported(t *testing.T) {
	x, err := NewIndex("harbor")
	require.NoError(t, err)
	for name, o := range map[string]Option{
		"WithPrefix": WithPrefix("api/"), "WithRoles": WithRoles(nil), "WithRowLimit": WithRowLimit(0),
		"WithHistory": WithHistory(History{Bytes: -1}), "WithTextBuffer": WithTextBuffer(0), "WithAuthenticate": WithAuthenticate(nil),
		"WithOrigins": WithOrigins("example.com"), "WithHosts": WithHosts("crew.example:80"), "WithClientLimit": WithClientLimit(0), "WithQueue": WithQueue(1, 0),
		"WithFrameLimit": WithFrameLimit(0), "WithKeepalive": WithKeepalive(time.Second, 0, time.Second),
		"WithBodyLimit": WithBodyLimit(0), "WithConcurrency": WithConcurrency(0), "WithDecisionWait": WithDecisionWait(time.Minute),
		"WithAudit": WithAudit(nil), "WithClock": WithClock(nil), "WithLogger": WithLogger(nil),
	} {
		_, err := New(x, &outbox{}, o)
		require.ErrorIs(t, err, ErrConfig, name)
		require.ErrorContains(t, err, name)
		_, err = NewIndex("harbor", o)
		require.ErrorIs(t, err, ErrConfig, name)
	}
	_, err = NewIndex("a/b")
	require.ErrorIs(t, err, ErrConfig)
	_, err = New(nil, nil)
	require.ErrorContains(t, err, "no index")
	require.ErrorContains(t, err, "no publisher")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, x.Run(ctx, []string{"localhost:1"}))
	require.ErrorIs(t, x.Run(ctx, []string{"localhost:1"}), ErrConfig)
}

func TestDocumentationNamesEveryOption(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "option.go", nil, 0)
	require.NoError(t, err)
	count := 0
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "With") {
			require.Contains(t, string(doc), "\n//\t"+f.Name.Name+" ")
			count++
		}
	}
	require.Equal(t, 19, count)
}

func TestDocumentationNamesEveryPath(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, rt := range routes {
		first, _, _ := strings.Cut(rt.path, "*")
		if first != "agents/" { // those of an agent are listed with {id}
			require.Contains(t, string(doc), "/"+strings.TrimSuffix(first, "/"), rt.path)
		}
		last := rt.path[strings.LastIndexByte(rt.path, '/')+1:]
		if last != "*" {
			require.Contains(t, string(doc), last)
		}
	}
}
