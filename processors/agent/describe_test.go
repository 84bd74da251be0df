package agent_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

var update = flag.Bool("update", false, "write the descriptions in documents")

const root = "../.."

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// whole returns the description of an agent with all capabilities, and crews.
func whole(t *testing.T) processors.Topology {
	t.Helper()
	services, err := sink.ParseServices("orders:http://localhost:1")
	require.NoError(t, err)
	a, err := agent.New("support", agent.Config{
		Model: think.StreamFunc(script), Tools: []tools.Tool{find}, Logger: zap.NewNop(), Costs: true, Latencies: true,
		Approval:  &approval.Policy{},
		Compactor: compact.Func(func(context.Context, compact.Conversation) (compact.Summary, error) { return compact.Summary{}, nil }),
		Memory:    &agent.Memory{Updater: updater.Scripted(func(string) string { return "" })},
		Budgets:   turn.Budgets{User: turn.Budget{Day: 1}},
		Deliver:   &agent.Deliver{Services: services},
		Channels:  &agent.Channels{Accounts: []channel.AccountAdapter{{Name: "main", Adapter: doorBoard{newBoard("b")}}}},
		Delegates: []string{"support"},
		Peers:     func() *peer.Settings { return new(peer.Settings) },
		Turn:      turn.Config{Gates: true},
	})
	require.NoError(t, err)
	graphs, err := a.Graphs()
	require.NoError(t, err)
	folds, err := fold.Graph("support", fold.Config{Gates: true, ThinkResponses: true})
	require.NoError(t, err)
	graphs = append(slices.DeleteFunc(graphs, func(g *goka.GroupGraph) bool { return g.Group() == folds.Group() }), folds)
	crews, err := crew.Graphs("support", crew.Config{})
	require.NoError(t, err)
	catalog, err := topics.For("support", topics.WithEvents(), topics.WithGates(), topics.WithCompaction(), topics.WithDeliveries(),
		topics.WithPeers(), topics.WithChannels(), topics.WithMemoir(), topics.WithCosts(), topics.WithLatencies(), topics.WithCrews())
	require.NoError(t, err)
	return processors.Describe(append(graphs, crews...)...).WithCatalog(catalog, catalog.Programs()...)
}

// programs are what the wire reference calls the groups.
var programs = map[string]string{
	"streams": "turn", "fold-streams": "fold", "gate-streams": "gate", "gate-grant-streams": "gate", "delivery-streams": "delivery",
	"delivery-routes": "delivery", "delegations": "delegation", "peer-tasks": "peer", "peer-chain": "peer chain", "memories": "memoir",
	"session-costs": "memoir/cost", "spending-totals": "memoir/cost", "latencies": "memoir/latency", "crew-agents": "crew", "crews": "crew",
	"crew-repositories": "crew",
}

// The wire reference and asyncapi.json are generated from one list, which the graphs are compared with.
func TestWireReferenceHasTheInputsAndOutputsOfTheGroups(t *testing.T) {
	var document struct {
		Operations map[string]struct {
			Action  string
			Channel struct {
				Ref string `json:"$ref"`
			}
			Tags []struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(file(t, "topics/asyncapi.json")), &document, json.MatchCaseInsensitiveNames(true),
		jsontext.AllowInvalidUTF8(true))) // an example has half a character
	listed, topicNames := map[string]bool{}, map[string]bool{}
	groups := map[string]bool{}
	for _, p := range programs {
		groups[p] = true
	}
	for _, o := range document.Operations {
		topic := strings.TrimPrefix(o.Channel.Ref, "#/channels/")
		topicNames[topic] = true
		if groups[o.Tags[0].Name] {
			listed[o.Tags[0].Name+" "+o.Action+"s "+topic] = true
		}
	}
	described := map[string]bool{}
	for _, g := range whole(t).Groups {
		program := programs[strings.TrimPrefix(g.Group, "support-")]
		require.NotEmpty(t, program, g.Group)
		for action, names := range map[string][]string{
			" receives ": slices.Concat(g.Inputs, g.Lookups, g.Joins), " sends ": g.Outputs,
		} {
			for _, name := range names {
				if name = strings.TrimPrefix(name, "support-"); topicNames[name] {
					described[program+action+name] = true
				}
			}
		}
	}
	require.Equal(t, described, listed)
}

// The diagram of the README is drawn by hand. Its arrows are inputs and outputs of the group, and no input is missing.
func TestREADMEDrawsTheInputsAndOutputsOfTheTurn(t *testing.T) {
	graph, err := turn.Graph("support", turn.Config{})
	require.NoError(t, err)
	g := processors.Describe(graph).Groups[0]
	_, diagram, found := strings.Cut(file(t, "README.md"), "```mermaid\n")
	require.True(t, found)
	diagram, _, _ = strings.Cut(strings.ReplaceAll(diagram, "{agent}", "support"), "```")
	require.Contains(t, diagram, `[["`+g.Group+":")
	var inputs []string
	title := regexp.MustCompile(`\["(.+?)(?:<br/>.*)?"\]`)
	for line := range strings.Lines(diagram) {
		path := strings.Split(strings.TrimSpace(line), " --> ")
		if len(path) < 2 {
			continue
		}
		for name := range strings.SplitSeq(path[1], " & ") {
			if titled := title.FindStringSubmatch(name); titled != nil {
				name = titled[1]
			}
			name = "support-" + strings.TrimPrefix(name, "support-")
			if path[0] == "turn" {
				require.Contains(t, append(g.Outputs, g.DeadLetters), name)
				continue
			}
			require.Equal(t, "turn", path[2])
			require.Contains(t, g.Inputs, name)
			inputs = append(inputs, name)
		}
	}
	require.ElementsMatch(t, g.Inputs, inputs)
}

// The comment of a capability's package names the topics of its groups.
func TestPackageCommentsNameTheTopicsOfTheirGroups(t *testing.T) {
	var missing []string
	for _, g := range whole(t).Groups {
		program := programs[strings.TrimPrefix(g.Group, "support-")]
		doc := file(t, "processors/"+strings.TrimSuffix(program, " chain")+"/doc.go")
		for _, name := range slices.Concat(g.Inputs, g.Outputs) {
			if name = strings.TrimPrefix(name, "support-"); !strings.Contains(doc, name) {
				missing = append(missing, program+": "+name)
			}
		}
	}
	require.Empty(t, missing)
}

// What is between the markers "described: NAME" in a document is written by go test ./processors/agent -run Documents -update.
func TestDocumentsHaveTheDescriptionsOfPrograms(t *testing.T) {
	support := func(parts agent.Part) processors.Topology {
		a, err := agent.New("support", agent.Config{Model: think.StreamFunc(script), Tools: []tools.Tool{find}, Logger: zap.NewNop(), Parts: parts})
		require.NoError(t, err)
		return a.Describe()
	}
	blocks := map[string]string{
		"diagram": "```mermaid\n" + support(agent.Groups|agent.Workers).Mermaid() + "```\n",
		"ACLs": "```sh\n" + strings.Join(processors.ACLCommands("User:support",
			support(0).ACLs(processors.ACLConfig{ExactlyOnce: true})), "\n") + "\n```\n",
	}
	const name = "processors/README.md"
	page := file(t, name)
	for block, want := range blocks {
		begin, end := "<!-- described: "+block+" -->\n", "<!-- end -->\n"
		before, rest, found := strings.Cut(page, begin)
		require.True(t, found, block)
		has, after, found := strings.Cut(rest, end)
		require.True(t, found, block)
		if *update {
			page = before + begin + want + end + after
			continue
		}
		require.Equal(t, want, has, "%s: go test ./processors/agent -run Documents -update", name)
	}
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(page), 0o644))
	}
}
