package layering_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unlinked are packages that a program which imports a capability must not link.
var unlinked = []string{"stretchr/testify", "goka/tester", "processortest", "kfake", "franz-go", "goleak", "rapid"}

func requireUnlinked(t *testing.T, listing []byte) {
	t.Helper()
	for line := range strings.Lines(string(listing)) {
		for _, name := range unlinked {
			require.NotContains(t, line, name)
		}
	}
}

// linked are the packages that users import.
var linked = []string{
	"processors", "processors/turn", "processors/turn/door", "processors/turn/token", "processors/turn/tools",
	"processors/delivery", "processors/delivery/sink", "processors/delivery/websocket",
}

func TestCapabilityLinksNothingForTests(t *testing.T) {
	for _, name := range linked {
		requireUnlinked(t, run(t, root(t), "go", "list", "-deps", "./"+name))
	}
}

// A program in which two Protobuf files have one name does not start.
func TestProtobufFilesHaveNamesOfTheirOwn(t *testing.T) {
	generated, err := filepath.Glob(filepath.Join(root(t), "processors/*/*.pb.go"))
	require.NoError(t, err)
	require.NotEmpty(t, generated)
	by := map[string]string{}
	for _, file := range generated {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, name, found := strings.Cut(string(text), "\n// source: ")
		require.True(t, found, file)
		name, _, _ = strings.Cut(name, "\n")
		require.Empty(t, by[name], "%s and %s", by[name], file)
		by[name] = file
	}
}

// program is a user's program, in a module that requires only this one.
const program = `package main

import (
	"context"
	"os"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
)

func main() {
	env, err := processors.FromEnviron(os.Environ())
	if err != nil {
		panic(err)
	}
	graph, err := turn.Graph("pilot")
	if err != nil {
		panic(err)
	}
	p, err := processors.New(env.Brokers, graph, env.Options...)
	if err != nil {
		panic(err)
	}
	if err := p.Run(context.Background()); err != nil {
		panic(err)
	}
}
`

func TestProgramInAnotherModuleLinksNothingForTests(t *testing.T) {
	dir, here := t.TempDir(), root(t)
	write := func(name string, contents []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), contents, 0o600))
	}
	write("main.go", []byte(program))
	// The program requires the versions that this module requires. Its module graph is then complete without the go.mod
	// files of older versions, which a machine that has only built this module has not downloaded.
	requirements, err := os.ReadFile(filepath.Join(here, "go.mod"))
	require.NoError(t, err)
	_, requirements, found := bytes.Cut(requirements, []byte("module "+module+"\n"))
	require.True(t, found)
	write("go.mod", slices.Concat([]byte("module example.com/pilot\n"), requirements,
		[]byte("\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+here+"\n")))
	sums, err := os.ReadFile(filepath.Join(here, "go.sum"))
	require.NoError(t, err)
	write("go.sum", sums)

	offline := []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "GOSUMDB=off"}
	runIn(t, offline, dir, "go", "build", "-o", "pilot", ".")
	requireUnlinked(t, runIn(t, offline, dir, "go", "list", "-deps", "."))
	requireUnlinked(t, run(t, dir, "go", "version", "-m", "pilot"))
	symbols := run(t, dir, "go", "tool", "nm", "pilot")
	for _, name := range []string{"github.com/stretchr/testify", "github.com/twmb/franz-go", "goka/tester."} {
		require.NotContains(t, string(symbols), name)
	}
}
