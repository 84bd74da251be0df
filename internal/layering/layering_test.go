//go:build lint

package layering_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

const module = "github.com/turntable-streams/turntable"

// pkg is a package as go list describes it.
type pkg struct {
	ImportPath   string
	Imports      []string
	Deps         []string
	TestGoFiles  []string
	XTestGoFiles []string
	TestImports  []string
	XTestImports []string
	Error        *struct{ Err string }
}

// name is the package's path in the module.
func (p pkg) name() string { return nameOf(p.ImportPath) }

func nameOf(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

func (p pkg) tests() []string { return slices.Concat(p.TestImports, p.XTestImports) }

// packages are those of the module, with what they import under either choice of a broker for tests.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listed()
	require.NoError(t, err)
	return all
}

// listed lists the packages once for all tests. The fields are named because go list needs much longer for all.
var listed = sync.OnceValues(func() (all []pkg, err error) {
	for _, tags := range []string{"", "kafka"} {
		listing, err := output(nil, root, "go", "list", "-tags", tags,
			"-json=ImportPath,Imports,Deps,TestGoFiles,XTestGoFiles,TestImports,XTestImports,Error", "./...")
		if err != nil {
			return nil, err
		}
		dec := jsontext.NewDecoder(bytes.NewReader(listing))
		for dec.PeekKind() == '{' {
			var p pkg
			if err := json.UnmarshalDecode(dec, &p); err != nil {
				return nil, err
			}
			if p.Error != nil {
				return nil, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err)
			}
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no packages are listed")
	}
	return all, nil
})

// root is the module's directory.
const root = "../.."

func run(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	return runIn(t, nil, dir, name, args...)
}

// runIn runs a command with more environment and returns its standard output.
func runIn(t *testing.T, env []string, dir, name string, args ...string) []byte {
	t.Helper()
	out, err := output(env, dir, name, args...)
	require.NoError(t, err)
	return out
}

func output(env []string, dir, name string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	c := exec.Command(name, args...)
	c.Dir, c.Stderr, c.Env = dir, &stderr, append(c.Environ(), env...)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, &stderr)
	}
	return out, nil
}

// layer is a set of packages. A package imports packages of lower layers, and of its own where own says so.
type layer struct {
	is  func(name string) bool
	own bool
}

// shared reports whether a package under processors is one that capabilities share.
func shared(name string) bool {
	switch name {
	case "processors/auth", "processors/httpserver", "processors/internal/entrance",
		"processors/internal/reload", "processors/internal/timed", "processors/internal/seen", "processors/internal/tableindex", "processors/internal/socket",
		"processors/internal/jwks", "processors/internal/machine", "processors/internal/machine/machinetest", "processors/approval", "processors/approval/policyfile":
		return true
	}
	return false
}

// answering reports whether a package is one of the runtime of workers that answer records with records, which the workers of
// several capabilities share.
func answering(name string) bool {
	switch name {
	case "processors/internal/dedup", "processors/internal/responder", "processors/internal/responder/respondertest":
		return true
	}
	return false
}

// The layers from the bottom.
var layers = []layer{
	{is: under("codec"), own: true},
	{is: under("topics")},
	{is: func(n string) bool { return n == embedded || under("internal")(n) && !bench(n) }, own: true},
	{is: equal("processors")},
	{is: shared, own: true},
	{is: under("processors/worker"), own: true},
	{is: answering, own: true},
	{is: func(n string) bool { return under("processors")(n) && !assembly(n) && !screen(n) }, own: true}, // of one capability: see below
	{is: screen},
	{is: assembly, own: true},
	{is: bench, own: true},
	{is: under("examples"), own: true},
}

// embedded is the broker for development and tests. It knows nothing of this library.
const embedded = "processors/embedded"

// screen shows operators what all capabilities have.
var screen = under("processors/console")

// assembly makes an agent of all capabilities, and tests it.
var assembly = under("processors/agent")

// bench is the load harness, which runs all of this library.
var bench = under("internal/bench")

func equal(name string) func(string) bool { return func(n string) bool { return n == name } }

func under(dir string) func(string) bool {
	return func(n string) bool { return n == dir || strings.HasPrefix(n, dir+"/") }
}

func layerOf(name string) int {
	return slices.IndexFunc(layers, func(l layer) bool { return l.is(name) })
}

func TestDependenciesPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		from := layerOf(p.name())
		require.GreaterOrEqual(t, from, 0, "%s is in no layer", p.name())
		for _, imported := range ours(p.Imports) {
			to := layerOf(imported)
			require.True(t, to < from || to == from && layers[from].own, "%s imports %s", p.name(), imported)
		}
	}
}

func TestCapabilitiesMeetInTopicsOnlyAlsoInTests(t *testing.T) {
	// worker is no capability but the runtime under the workers of all of them. It is not in internal, because users' own
	// workers run on it, and not in processors, because programs without a worker do not link its client.
	const harness, runtime = "processortest", "worker"
	for _, p := range packages(t) {
		own := capabilityOf(p.name())
		if own == "" {
			continue
		}
		allowed := []string{"", own, runtime}
		if tested, ok := testedBy[p.name()]; ok {
			allowed = append(allowed, tested)
		}
		if slices.Contains(transports, p.name()) {
			allowed = append(allowed, "delivery")
		}
		if to, ok := bridges[p.name()]; ok {
			allowed = append(allowed, to)
		}
		for _, imported := range ours(p.Imports) {
			require.Contains(t, allowed, capabilityOf(imported), "%s imports %s", p.name(), imported)
		}
		if with, ok := playedWith[p.name()]; ok {
			allowed = append(allowed, with)
		}
		for _, imported := range ours(p.tests()) {
			require.Contains(t, append(allowed, harness), capabilityOf(imported), "%s tests with %s", p.name(), imported)
		}
	}
}

// testedBy are the packages of the harness that are for one capability, which they import. Only tests import them.
var testedBy = map[string]string{"processors/processortest/gates": "gate"}

// playedWith are packages whose tests run another capability: a coding agent's permissions are gates, and
// the agent that is archived has open turns.
var playedWith = map[string]string{"processors/crew": "gate", "processors/crew/internal/agent": "gate", "processors/archive": "turn"}

// bridges are packages that use what another capability has for users: the models of the turn's workers, the translation of
// ACP's updates. Only programs that want that import them.
var bridges = map[string]string{"processors/memoir/model": "turn", "processors/crew/internal/transcript": "fold"}

// transports are the transports of the sink, whose process makes the requests of all capabilities, that belong to another
// capability, and the tests that run the sink with them.
var transports = []string{"processors/peer/transport", "processors/channel"}

// capabilityOf is the folder under processors that a package belongs to, if any.
func capabilityOf(name string) string {
	rest, _ := strings.CutPrefix(name, "processors/")
	if rest == name || name == embedded || shared(name) || answering(name) || assembly(name) || screen(name) {
		return ""
	}
	folder, _, _ := strings.Cut(rest, "/")
	return folder
}

func TestTopLevelFoldersAreTheFive(t *testing.T) {
	for _, p := range packages(t) {
		top, _, _ := strings.Cut(p.name(), "/")
		require.Contains(t, []string{"processors", "topics", "codec", "examples", "internal"}, top)
	}
}

// confined lists packages that only the named packages may import. Tests may import any package.
var confined = []struct {
	what string
	by   []string
}{
	{"github.com/IBM/sarama", []string{
		"topics", "internal/", "processors", "processors/processortest", "processors/worker", "processors/worker/",
		"processors/turn/migrate",                   // transactions with offsets of a group of its own
		"examples/operate", "processors/operations", // the requests of operators, and transactions
	}},
	{"github.com/lovoo/goka/tester", []string{"processors/processortest"}},
	{"github.com/stretchr/testify", []string{
		"processors/processortest", "codec/codectest", "processors/turn/think/internal/providertest",
		"processors/channel/internal/platform/platformtest", "processors/internal/machine/machinetest", "internal/testing/program",
	}},
	{module + "/processors/channel/internal/platform/platformtest", nil},
	{module + "/processors/internal/machine/machinetest", nil},
	{module + "/processors/turn/think/internal/providertest", nil},
	{"github.com/twmb/franz-go/pkg/kfake", []string{"processors/embedded"}},
	{"github.com/twmb/franz-go", []string{
		"processors/embedded", "internal/testing/wiretest", "internal/testing/kafkatest", "internal/testing/kafkatest/", "internal/bench", "examples/",
		"internal/testing/kill", "internal/testing/testbroker", "processors/worker/internal/share", // Sarama has no share groups
		"internal/kafka/franz", "processors/archive", // Sarama cannot delete a topic by its ID
		"processors/worker", // asks for share groups and for the journal of an archive
	}},
	// The rules of a capability have no HTTP: its door is a package of its own.
	{"net/http", []string{
		"processors", "processors/agent", "processors/auth", "processors/auth/", "processors/httpserver", "processors/internal/entrance", "processors/internal/socket", "internal/loopback", "processors/turn/turnhttp", "processors/delivery/sink", "processors/delivery/websocket",
		"processors/fold/invoke", "processors/gate/gatehttp", "processors/peer/peerhttp", "processors/peer/transport", "internal/testing/", "internal/bench", "internal/bench/", "examples/",
		"processors/delegation/delegationhttp", "processors/channel", "processors/channel/internal/platform", "processors/channel/internal/platform/platformtest", // the adapters of platforms follow
		"processors/channel/webhook", "processors/channel/slack", "processors/channel/teams", "processors/channel/telegram",
		"processors/channel/discord", "processors/channel/mattermost", "processors/channel/matrix", "processors/channel/webchat",
		"processors/crew/crewhttp", "processors/console",
		"processors/turn/think/", // the models of providers
		"internal/kafka",         // the token endpoint of a cluster
	}},
	{"pgregory.net/rapid", []string{"internal/testing/rapidseed"}},
	{module + "/internal/testing/rapidseed", nil},
	{"go.uber.org/goleak", []string{"internal/testing/leaktest"}},
	// encoding/json folds case and accepts invalid UTF-8. Packages that judge this module from outside share no code with it.
	// The ACP SDK's types have its methods.
	{"encoding/json", []string{"internal/testing/wiretest", "internal/testing/kafkatest", "processors/fold/bridge/acp", "processors/crew/host", "processors/crew/crewtest"}},
	{module + "/internal/testing/wiretest", []string{"internal/bench"}},
	{module + "/internal/testing/kafkatest", []string{"internal/testing/kafkatest/", "internal/testing/testbroker", "internal/bench"}},
	{module + "/internal/testing/testbroker", nil},
	{module + "/internal/testing/leaktest", nil},
	{module + "/internal/testing/memnet", nil},
	{module + "/internal/testing/kill", nil},
	{module + "/internal/testing/program", nil},
	{module + "/processors/embedded", []string{"internal/testing/testbroker", "internal/bench", "internal/bench/", "examples/", "processors/agent"}},
}

func TestConfinedPackagesAreImportedNowhereElse(t *testing.T) {
	var strays []string
	for _, p := range packages(t) {
		for _, c := range confined {
			for _, imported := range p.Imports {
				if imported != c.what && !strings.HasPrefix(imported, c.what+"/") {
					continue
				}
				allowed := slices.ContainsFunc(c.by, func(by string) bool {
					return p.name() == by || strings.HasSuffix(by, "/") && strings.HasPrefix(p.name(), by)
				})
				if !allowed {
					strays = append(strays, p.name()+" imports "+imported)
				}
			}
		}
	}
	require.Empty(t, strays)
}

// mostBinaries is how many packages may have tests. Each is linked and started on its own, which takes longer than most tests.
const mostBinaries = 95

func TestFewPackagesHaveTests(t *testing.T) {
	tested := map[string]bool{}
	for _, p := range packages(t) {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			tested[p.name()] = true
		}
	}
	require.LessOrEqual(t, len(tested), mostBinaries, "put the tests of a new package into a neighbour's")
}

// A package whose property tests drew from a seed of their own would fail a run for no change.
func TestPropertyTestsDrawFromTheSeedOfTheRun(t *testing.T) {
	const seed = "internal/testing/rapidseed"
	some := false
	for _, p := range packages(t) {
		if p.name() == seed || !slices.Contains(p.tests(), "pgregory.net/rapid") {
			continue
		}
		some = true
		require.Contains(t, ours(p.tests()), seed, "%s: import it in a test file", p.name())
	}
	require.True(t, some)
}

func ours(imports []string) []string {
	var names []string
	for _, i := range imports {
		if strings.HasPrefix(i, module+"/") {
			names = append(names, nameOf(i))
		}
	}
	return names
}
