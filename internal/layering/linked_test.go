//go:build lint

package layering_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unlinked are packages that a program which imports a capability must not link.
var unlinked = []string{"stretchr/testify", "goka/tester", "processortest", "kfake", "goleak", "rapid"}

// shareGroups is the client of share groups, which only programs with a worker link.
const shareGroups = "franz-go"

func requireUnlinked(t *testing.T, listing []byte, more ...string) {
	t.Helper()
	for line := range strings.Lines(string(listing)) {
		for _, name := range slices.Concat(unlinked, more) {
			require.NotContains(t, line, name)
		}
	}
}

// linked are the packages that users import; workers are those that run a worker.
var (
	linked = []string{
		"processors", "processors/turn", "processors/turn/turnhttp", "processors/turn/token", "processors/delivery",
		"processors/gate", "processors/peer",
	}
	workers = []string{
		"processors/worker", "processors/turn/think", "processors/turn/tools", "processors/turn/compact",
		"processors/delivery/sink", "processors/delivery/websocket", // the WebSocket is a transport of the sink
	}
)

func TestCapabilityLinksNothingForTests(t *testing.T) {
	for _, name := range linked {
		requireUnlinked(t, run(t, root, "go", "list", "-deps", "./"+name), shareGroups)
	}
	for _, name := range workers {
		requireUnlinked(t, run(t, root, "go", "list", "-deps", "./"+name))
	}
}

// A program with an agent links its embedded broker, and nothing else that only tests need.
func TestAgentLinksNothingForTests(t *testing.T) {
	for line := range strings.Lines(string(run(t, root, "go", "list", "-deps", "./processors/agent"))) {
		for _, name := range append(slices.Clone(unlinked), "agenttest") {
			require.False(t, name != "kfake" && strings.Contains(line, name), "processors/agent links %s", line)
		}
	}
}

// The tests of a capability that run on the harness link no other one, and no worker.
func TestHarnessLinksNoCapability(t *testing.T) {
	for line := range strings.Lines(string(run(t, root, "go", "list", "-deps", "./processors/processortest"))) {
		name := strings.TrimSpace(nameOf(line))
		require.NotContains(t, name, shareGroups)
		require.Contains(t, []string{"", "processortest"}, capabilityOf(name), "processortest links %s", name)
		require.False(t, assembly(name), "processortest links %s", name)
	}
}

// sdks are the SDKs of model providers and the package that links each.
var sdks = map[string]string{
	"github.com/anthropics/anthropic-sdk-go": "processors/turn/think/anthropic",
	"google.golang.org/genai":                "processors/turn/think/gemini",
	"google.golang.org/grpc":                 "processors/turn/think/gemini",
	"go.opencensus.io":                       "processors/turn/think/gemini",
}

// A program that runs turns, or a model of its own, does not link the SDKs of providers.
func TestSDKsOfProvidersAreLinkedByTheirAdapterOnly(t *testing.T) {
	var by []string
	for _, p := range packages(t) {
		for _, dep := range p.Deps {
			for sdk, adapter := range sdks {
				if dep != sdk && !strings.HasPrefix(dep, sdk+"/") {
					continue
				}
				require.True(t, p.name() == adapter || p.name() == "examples/multiagent" || p.name() == "examples/minimal" || p.name() == "examples/slack", "%s links %s", p.name(), dep)
				by = append(by, p.name())
			}
		}
	}
	for _, adapter := range sdks {
		require.Contains(t, by, adapter)
	}
}

// A program with doors, and authentication of its own, does not link the libraries for tokens.
func TestTokenLibrariesAreLinkedByTheirPackageOnly(t *testing.T) {
	linked := false
	for _, p := range packages(t) {
		for _, dep := range p.Deps {
			if dep == "github.com/golang-jwt/jwt/v5" || dep == "github.com/MicahParks/jwkset" {
				require.Contains(t, []string{"processors/auth/jwt", "processors/internal/jwks", "processors/channel/teams", "examples/processing", "examples/channels"}, p.name(), "%s links %s", p.name(), dep)
				linked = true
			}
		}
	}
	require.True(t, linked)
}

// A program in which two Protobuf files have one name does not start.
func TestProtobufFilesHaveNamesOfTheirOwn(t *testing.T) {
	generated, err := filepath.Glob(filepath.Join(root, "internal/rows/*/*.pb.go"))
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
	graph, err := turn.Graph("pilot", turn.Config{})
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

// offline makes go commands use only what this module has downloaded. Without -trimpath the module's directory would be in what is
// compiled, and a clone in another directory would compile everything again.
var offline = []string{"GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off", "GOSUMDB=off"}

// programModule writes the program with a module of its own to a temporary directory.
func programModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	require.NoError(t, err)
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
	return dir
}

func TestProgramInAnotherModuleLinksNothingForTests(t *testing.T) {
	dir := programModule(t)
	runIn(t, offline, dir, "go", "build", "-o", "pilot", ".")
	requireUnlinked(t, runIn(t, offline, dir, "go", "list", "-deps", "."), shareGroups)
	requireUnlinked(t, run(t, dir, "go", "version", "-m", "pilot"), shareGroups)
	symbols := run(t, dir, "go", "tool", "nm", "pilot")
	for _, name := range []string{"github.com/stretchr/testify", "github.com/twmb/franz-go", "goka/tester."} {
		require.NotContains(t, string(symbols), name)
	}
	logSize(t, dir, "go build")
	runIn(t, offline, dir, "go", "build", "-ldflags=-s -w", "-o", "pilot", ".")
	logSize(t, dir, "go build -ldflags='-s -w'")
}

func logSize(t *testing.T, dir, command string) {
	t.Helper()
	file, err := os.Stat(filepath.Join(dir, "pilot"))
	require.NoError(t, err)
	t.Logf("%s: %.1f MB", command, float64(file.Size())/1e6)
}

// The Footprint section of the architecture page lists the modules that the program links, and counts their packages.
func TestFootprintNamesEveryLinkedModule(t *testing.T) {
	const format = `{{if .Standard}}std{{else}}{{.Module.Path}}{{end}}`
	// Other systems link other packages of golang.org/x/sys.
	platform := append([]string{"GOOS=linux", "GOARCH=amd64"}, offline...)
	listing := runIn(t, platform, programModule(t), "go", "list", "-deps", "-f", format, ".")
	packages := map[string]int{}
	for _, path := range strings.Fields(string(listing)) {
		packages[path]++
	}
	standard := packages["std"]
	for _, own := range []string{"std", module, "example.com/pilot"} {
		delete(packages, own)
	}
	modules, third := slices.Sorted(maps.Keys(packages)), 0
	for _, n := range packages {
		third += n
	}
	t.Logf("%d packages of the standard library, %d of %d other modules", standard, third, len(modules))

	_, section, found := strings.Cut(document(t, "internal/README.md"), "\n## Footprint\n")
	require.True(t, found)
	_, block, found := strings.Cut(section, "```\n")
	require.True(t, found)
	block, _, found = strings.Cut(block, "```")
	require.True(t, found)
	require.Equal(t, modules, strings.Fields(block))
	require.Contains(t, section, fmt.Sprintf("%d packages of %d other modules", third, len(modules)))
}
