package topics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/turntable-streams/turntable/topics"
)

// The document has one channel for each topic, and one operation for each of the programs that write or read it.
func TestWireAsyncAPIDescribesEveryTopic(t *testing.T) {
	channels, operations, parts := node{}, node{}, node{}
	for _, r := range wireRecords(t) {
		channel := node{
			{"address", "{agent}-" + r.name},
			{"title", r.name},
			{"parameters", node{{"agent", node{{"$ref", "#/components/parameters/agent"}}}}},
			{"bindings", node{{"kafka", r.kafka()}}},
		}
		if r.writers != nil {
			channel = channel.with("messages", node{{"record", node{{"$ref", "#/components/messages/" + r.name}}}})
			parts = parts.with(r.name, r.message(t))
		}
		channels = channels.with(r.name, channel)
		operations = append(operations, r.operations("send", r.writers)...)
		operations = append(operations, r.operations("receive", r.readers)...)
	}
	requireFile(t, "asyncapi.json", document(node{
		{"asyncapi", "3.0.0"},
		{"info", node{
			{"title", "Turntable"},
			{"version", "1.0.0"},
			{"description", "The topics of an agent. Generated from the record types of package topics, as WIRE.md is, which says more."},
			{"license", node{{"name", "Apache-2.0"}, {"url", "https://www.apache.org/licenses/LICENSE-2.0"}}},
		}},
		{"defaultContentType", "application/json"},
		{"channels", channels},
		{"operations", operations},
		{"components", node{
			{"parameters", node{{"agent", node{{"description", "The name of the agent."}}}}},
			{"messages", parts},
		}},
	}))
}

func (r *wireRecord) kafka() node {
	configuration := node{{"cleanup.policy", strings.Split(string(r.spec.Cleanup), ",")}}
	if r.spec.Retention > 0 {
		configuration = configuration.with("retention.ms", r.spec.Retention.Milliseconds())
	}
	return node{{"topicConfiguration", configuration}, {"bindingVersion", "0.5.0"}}
}

func (r *wireRecord) message(t *testing.T) node {
	names := node{}
	for _, name := range append([]string{topics.HeaderID}, r.headers...) {
		names = names.with(name, node{{"description", r.source.header(name)}, {"type", "string"}})
	}
	n := node{
		{"title", r.spec.Record},
		{"bindings", node{{"kafka", node{
			{"key", node{{"description", string(r.spec.Key)}, {"type", "string"}}}, {"bindingVersion", "0.5.0"},
		}}}},
		{"headers", node{{"type", "object"}, {"properties", names}}},
	}
	if !r.isJSON() {
		return append(n, member{"contentType", "text/plain"}, member{"payload", node{{"type", "string"}}})
	}
	n = n.with("payload", node{{"$ref", "./schema/" + r.name + ".json"}})
	examples := []any{}
	for _, e := range r.examples {
		examples = append(examples, node{{"payload", e}})
	}
	return n.with("examples", examples)
}

func (r *wireRecord) operations(action string, programs []string) (all node) {
	for _, p := range programs {
		id := strings.NewReplacer(" ", "-", "/", "-").Replace(p) + "-" + action + "s-" + r.name
		all = all.with(id, node{
			{"action", action},
			{"title", fmt.Sprintf("%s %ss %s", p, action, r.name)},
			{"channel", node{{"$ref", "#/channels/" + r.name}}},
			{"tags", []any{node{{"name", p}}}},
		})
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return all
}
