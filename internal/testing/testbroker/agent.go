package testbroker

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Agent returns an agent name that has not been used on the broker.
func Agent() string { return "agent-" + strings.ToLower(rand.Text()[:12]) }

// AgentOf is Agent for a test, at the end of which the records that Turntable has written to topics of the agent are validated, and
// the topics are deleted. Clients ask a broker for all its topics
// again and again, so that tests that leave many behind slow down those that follow. A test calls it before it starts anything
// that uses the topics.
func AgentOf(tb testing.TB) string {
	tb.Helper()
	agent, brokers := Agent(), Start(tb)
	tb.Cleanup(func() {
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
		if err != nil {
			tb.Error(err)
			return
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		admin := kadm.NewClient(client)
		listed, err := admin.ListTopics(ctx)
		names := slices.DeleteFunc(listed.Names(), func(name string) bool { return !strings.Contains(name, agent) })
		if err == nil && len(names) > 0 {
			if Embedded { // a real Kafka removes records
				if err := validate(ctx, brokers, names...); err != nil {
					tb.Error(err)
				}
			}
			_, err = admin.DeleteTopics(ctx, names...)
		}
		if err != nil {
			tb.Errorf("the topics of %s are not deleted: %v", agent, err)
		}
	})
	return agent
}
