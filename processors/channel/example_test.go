package channel_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/channel"
)

func ExampleParseSettings() {
	s, err := channel.ParseSettings([]byte(`
accounts:
  - {channel: slack, name: main, prompt: Answer briefly., group: all}
agents:
  - {name: front, description: Answers first.}
default_agent: front
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	account, _ := s.Account("slack", "main")
	fmt.Println(account.Prompt, account.DM, account.Group)

	_, err = channel.ParseSettings([]byte("default_agent: front\n"))
	fmt.Println(err)
	// Output:
	// Answer briefly. respond all
	// channel: bad settings: line 1: default_agent: not in agents
}
