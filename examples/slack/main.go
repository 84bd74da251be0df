// Slack is an agent on Slack. See README.md for the settings of the Slack app.
package main

import (
	"cmp"
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/slack"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/anthropic"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	model, err := anthropic.New(think.Settings{
		Key: os.Getenv("ANTHROPIC_API_KEY"), Model: "claude-sonnet-4-5", System: "You answer questions in a Slack workspace, briefly.",
	})
	if err != nil {
		log.Fatal(err)
	}
	workspace, err := slack.New(slack.Config{
		Account:        "main",
		Token:          os.Getenv("SLACK_BOT_TOKEN"),
		SigningSecrets: []string{os.Getenv("SLACK_SIGNING_SECRET")},
		URL:            os.Getenv("SLACK_URL"), // empty: Slack's
	})
	if err != nil {
		log.Fatal(err)
	}
	defer workspace.Close()
	support, err := agent.New("support", agent.Config{
		Model:    model,
		Channels: &agent.Channels{Accounts: []channel.AccountAdapter{{Name: "main", Adapter: workspace}}},
		Listen:   cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080"),
		// Slack signs its requests. All other doors are closed: no one has an account for them.
		Authenticate: func(*http.Request) (auth.Caller, error) { return auth.Caller{}, auth.ErrRejected },
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := support.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
