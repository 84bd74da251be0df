package host

import (
	"context"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

const hostProgram = "host"

// child is a host in a process of its own, which a test kills: its directory, and the command line of its agent.
type child struct {
	Dir  string
	Argv []string
}

// runHost runs a host and starts an agent. It does not return: what is tested is that agents end with a host that cannot end them.
func runHost(_ context.Context, c child) error {
	h, err := New(Config{
		Agent: "harbor", Name: "h1", Brokers: []string{"127.0.0.1:1"}, Commands: map[string][]string{"": c.Argv}, Dirs: []string{c.Dir},
		Policy: Policy{Terminal: Allow},
	})
	if err != nil {
		return err
	}
	h.open(&written{})
	h.begin(context.Background(), testEpoch)
	body := crewbody.Start{AgentID: agentID, Cwd: c.Dir}
	action, err := h.catalog.CrewActions.Codec().Marshal(topics.CrewAction{
		ActionID: "s", Kind: body.Kind(), Host: "h1", Subject: mailbox.Agent(agentID), Body: crewbody.Encode(body),
	})
	if err != nil {
		return err
	}
	h.onAction(context.Background(), processors.Inbound{Value: action})
	select {}
}
