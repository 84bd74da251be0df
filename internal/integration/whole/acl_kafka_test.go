//go:build kafka

package whole

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// A Kafka with an authorizer allows the agent what its description says, and nothing else. An administrator has created the topics of
// the description, except where the agent creates them. Every group, worker, sender and door starts without a denied request, and a turn, the memory and the costs of a
// session reach their ends.
func TestAgentNeedsNoOtherACLsThanItsDescriptionHas(t *testing.T) {
	cluster := kafkatest.New(t, kafkatest.Options{OAuth: true, Properties: map[string]string{
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":           "User:ANONYMOUS", // of the listener without authentication
	}})
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Bootstrap()...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	for name, config := range map[string]processors.ACLConfig{
		"least": {}, "exact": {ExactlyOnce: true}, "creates": {CreateTopics: true},
		"before": {}, // with the rights of a time when there was no journal
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			core, logs := observer.New(zap.InfoLevel)
			c := withAll(t)
			c.Logger, c.Brokers, c.Delegates = zap.New(core), cluster.OAuthBootstrap(), []string{name}
			if config.ExactlyOnce {
				c.Kafka = append(c.Kafka, processors.WithGuarantee(processors.ExactlyOnce), processors.WithInstance("i-1"))
			}
			c.Kafka = append(c.Kafka, processors.WithProperties(map[string]string{
				"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
				"sasl.oauthbearer.token.endpoint.url": "file://" + tokenOf(t, name),
			}))
			a, err := agent.New(name, c)
			require.NoError(t, err)
			topology := a.Describe()
			if !config.CreateTopics {
				require.NoError(t, processors.EnsureTopics(ctx, cluster.Bootstrap(), processors.WithTopicSpecs(topology.Specs()...),
					processors.WithPartitions(2)))
			}
			rights := topology.ACLs(config)
			if name == "before" {
				rights = slices.DeleteFunc(rights, func(a processors.ACL) bool { return a.Name == topology.Journal })
			}
			allow(ctx, t, kadm.NewClient(client), "User:"+name, rights)

			running, stop := context.WithCancel(ctx)
			ran := make(chan error, 1)
			go func() { ran <- a.Run(running) }()
			defer func() {
				stop()
				require.NoError(t, <-ran)
			}()
			denied := func() (lines []string) {
				for _, l := range logs.All() {
					if text := fmt.Sprint(l.Message, l.ContextMap()); strings.Contains(strings.ToLower(text), "authoriz") ||
						strings.Contains(text, "does not let") || strings.Contains(text, "may not describe") {
						lines = append(lines, text)
					}
				}
				return lines
			}
			answer, err := a.Ask(ctx, "s-1", "Where is order 7?")
			require.NoError(t, err, denied())
			require.Equal(t, "It is on its way.", answer)

			ends, err := kgo.NewClient(kgo.SeedBrokers(cluster.Bootstrap()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
				kgo.ConsumeTopics(a.Topics().MemoirContext.Name(), a.Topics().SessionCost.Name(), a.Topics().ToolUseLatency.Name()))
			require.NoError(t, err)
			defer ends.Close()
			for seen := map[string]bool{}; len(seen) < 3; {
				fetched := ends.PollFetches(ctx)
				require.NoError(t, fetched.Err0(), "%v of the topics: %v", seen, denied())
				fetched.EachRecord(func(r *kgo.Record) { seen[r.Topic] = true })
			}
			for _, p := range topology.Programs { // of those without work, too
				if p.Group != "" {
					require.Eventually(t, func() bool { return hasMembers(ctx, client, p.Group) }, time.Minute, 50*time.Millisecond, "%s: %v", p.Name, denied())
				}
			}
			require.Equal(t, name == "before", len(denied()) > 0, denied())
			for _, line := range denied() {
				require.Equal(t, "before", name, line)
				require.Contains(t, line, topology.Journal)
			}
		})
	}
}

// withAll returns the configuration of an agent with a tool and nearly all capabilities. Sessions end after a second.
func withAll(t *testing.T) agent.Config {
	services, err := sink.ParseServices("orders:http://127.0.0.1:1")
	require.NoError(t, err)
	model := func(_ context.Context, s think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			if *s.Input().Role == "user" {
				yield(think.Delta{Call: &think.Call{ID: s.Key, Name: "find_order", Input: topics.Raw(`{"number":7}`)}}, nil)
				return
			}
			yield(think.Delta{Text: "It is on its way."}, nil)
		}
	}
	return agent.Config{
		Model:     think.StreamFunc(model),
		Tools:     []tools.Tool{tools.New("find_order", "Finds an order.", func(context.Context, struct{}) (string, error) { return "on its way", nil })},
		Approval:  &approval.Policy{Default: approval.Allow},
		Compactor: compact.Func(func(context.Context, compact.Conversation) (compact.Summary, error) { return compact.Summary{}, nil }),
		Memory:    &agent.Memory{Updater: updater.Scripted(func(text string) string { return text }), After: time.Second},
		Costs:     true, Latencies: true, Budgets: turn.Budgets{User: turn.Budget{Day: 1}},
		Deliver: &agent.Deliver{Services: services},
		Peers:   func() *peer.Settings { return new(peer.Settings) },
	}
}

// hasMembers reports whether a share group has members.
func hasMembers(ctx context.Context, client *kgo.Client, group string) bool {
	req := kmsg.NewPtrShareGroupDescribeRequest()
	req.GroupIDs = []string{group}
	described, err := req.RequestWith(ctx, client)
	return err == nil && len(described.Groups) == 1 && len(described.Groups[0].Members) > 0
}

// tokenOf returns the path of an unsigned token of a user.
func tokenOf(t *testing.T, user string) string {
	t.Helper()
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	now := time.Now()
	token := part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, user, now.Unix(), now.Add(time.Hour).Unix())) + "."
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
	return file
}

// allow creates ACLs, and waits until the brokers have them.
func allow(ctx context.Context, t *testing.T, admin *kadm.Client, principal string, acls []processors.ACL) {
	t.Helper()
	some := func() *kadm.ACLBuilder { return kadm.NewACLs().Allow(principal).AllowHosts("*") }
	for _, a := range acls {
		b := some().ResourcePatternType(kadm.ACLPatternLiteral)
		if a.Prefixed {
			b = b.ResourcePatternType(kadm.ACLPatternPrefixed)
		}
		switch a.Resource {
		case "topic":
			b = b.Topics(a.Name)
		case "group":
			b = b.Groups(a.Name)
		case "transactional-id":
			b = b.TransactionalIDs(a.Name)
		case "cluster":
			b = b.Clusters()
		default:
			t.Fatal(a.Resource)
		}
		var operations []kadm.ACLOperation
		for _, name := range a.Operations {
			o, err := kmsg.ParseACLOperation(name)
			require.NoError(t, err)
			operations = append(operations, o)
		}
		created, err := admin.CreateACLs(ctx, b.Operations(operations...))
		require.NoError(t, err)
		for _, c := range created {
			require.NoError(t, c.Err)
		}
	}
}
