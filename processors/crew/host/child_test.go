package host

import (
	"context"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// childDir is the environment variable with the directory of a host in a process of its own, which a test kills. The file
// "argv" in it is the command line of its agent.
const childDir = "TURNTABLE_TEST_HOST_DIR"

// runChild runs a host and starts an agent. It does not return.
func runChild() error {
	dir := os.Getenv(childDir)
	raw, err := os.ReadFile(filepath.Join(dir, "argv"))
	if err != nil {
		return err
	}
	var argv []string
	if err := json.Unmarshal(raw, &argv); err != nil {
		return err
	}
	h, err := New(Config{
		Agent: "harbor", Name: "h1", Brokers: []string{"127.0.0.1:1"}, Commands: map[string][]string{"": argv}, Dirs: []string{dir},
		Policy: Policy{Terminal: Allow},
	})
	if err != nil {
		return err
	}
	h.open(&written{})
	h.begin(context.Background(), testEpoch)
	body := topics.CrewStart{AgentID: agentID, Cwd: dir}
	action, err := h.catalog.CrewActions.Codec().Marshal(topics.CrewAction{
		ActionID: "s", Kind: body.CrewKind(), Host: "h1", Subject: mailbox.Agent(agentID), Body: topics.EncodeCrewBody(body),
	})
	if err != nil {
		return err
	}
	h.onAction(context.Background(), processors.Inbound{Value: action})
	select {}
}
