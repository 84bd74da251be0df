package peer_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/turntable-streams/turntable/processors/peer"
)

// A configuration from a file. Each request looks at the current one.
func ExampleOpenSettings() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "config.json")
	write := func(tokens string) {
		content := `{"peers":{"enabled":true,"instanceId":"hq-1","inboundTokens":[` + tokens + `]}}`
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			panic(err)
		}
	}

	write(`{"id":"partner-b","token":"T1","allowedAgentIds":["front"]}`)
	file, err := peer.OpenSettings(path, peer.SettingsConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	partner, ok := file.Settings().Accept("T1")
	fmt.Println(partner.ID, ok, partner.MayUse("front"), partner.MayUse("back"), partner.MayUse(""))

	write("") // the token is revoked
	_, ok = file.Settings().Accept("T1")
	fmt.Println(ok)
	// Output:
	// partner-b true true false false
	// false
}

func ExampleParseSettings() {
	_, err := peer.ParseSettings([]byte(`{"peers":{
		"inboundTokens": [{"id":"partner-b","token":"T1","allowedAgentIds":"front"}]
	}}`), os.LookupEnv)
	fmt.Println(err)
	// Output: peer: bad settings: peers.inboundTokens[0].allowedAgentIds: want an array of texts
}

// The tasks of a peer do not get the tool delegate_to_peer unless the entry of its token names it.
func ExampleSettings_MayDelegate() {
	s, err := peer.ParseSettings([]byte(`{"peers":{"inboundTokens":[
		{"id":"partner-b","token":"T1"},
		{"id":"partner-c","token":"T2","allowedTools":["delegate_to_peer"]}
	]}}`), os.LookupEnv)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.MayDelegate("partner-b"), s.MayDelegate("partner-c"))
	// Output: false true
}

func ExampleSettings_Peer() {
	s, err := peer.ParseSettings([]byte(`{"peers":{"enabled":true,"instanceId":"hq-1","outbound":[
		{"id":"tenant-a","baseUrl":"https://a.example/","token":"T1"}
	]}}`), os.LookupEnv)
	if err != nil {
		fmt.Println(err)
		return
	}
	tenant, ok := s.Peer("tenant-a")
	fmt.Println(tenant.BaseURL, tenant.Timeout, tenant.Token, ok)
	// Output: https://a.example 1m0s [secret] true
}
