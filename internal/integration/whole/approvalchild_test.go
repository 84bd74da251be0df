package whole

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// The environment variables of the child process, which runs the turns and the gates of an agent.
const (
	approvalAgent     = "TURNTABLE_APPROVAL_CHILD_AGENT"
	approvalBrokers   = "TURNTABLE_APPROVAL_CHILD_BROKERS"
	approvalGuarantee = "TURNTABLE_APPROVAL_CHILD_GUARANTEE"
)

const approvalPartitions = 2

// approvals asks for everything but looking. No one answers for the tool wait.
func approvals() approval.Policy {
	return approval.Policy{
		ReadOnly: []string{"look"}, TTL: time.Hour,
		Rules: []approval.Rule{
			{Tool: "pay", Effect: approval.Ask, Edit: true},
			{Tool: "wait", Effect: approval.Ask, TTL: time.Second},
			{Tool: "delete", Effect: approval.Deny, Message: "nothing is deleted"},
		},
	}
}

func approvalOptions(catalog topics.Catalog, instance string, guarantee processors.Guarantee) []processors.Option {
	return []processors.Option{
		processors.WithTopics(catalog), processors.WithPartitions(approvalPartitions), processors.WithInstance(instance),
		processors.WithGuarantee(guarantee), processors.WithTick(10 * time.Millisecond),
	}
}

// approvalChild runs the turns and the gates in one process until it is killed.
func approvalChild() error {
	agent, brokers := os.Getenv(approvalAgent), strings.Split(os.Getenv(approvalBrokers), ",")
	catalog, err := topics.For(agent, topics.WithGates())
	if err != nil {
		return err
	}
	turns, err := turn.Graph(agent, turn.WithApproval(approvals()))
	if err != nil {
		return err
	}
	gates, err := gate.Graph(agent, gate.WithPolicy(approvals()))
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	for name, graph := range map[string]*goka.GroupGraph{"turns": turns, "gates": gates} {
		p, err := processors.New(brokers, graph, approvalOptions(catalog, name, processors.Guarantee(os.Getenv(approvalGuarantee)))...)
		if err != nil {
			return err
		}
		go func() { ended <- p.Run(context.Background()) }()
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
