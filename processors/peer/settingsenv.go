package peer

import "strings"

// variables are the environment variables that take precedence over members of peers.
var variables = []struct{ name, member string }{
	{"PEER_ENABLED", "enabled"},
	{"PEER_INSTANCE_ID", "instanceId"},
	{"PEER_INSTANCE_NAME", "instanceName"},
	{"PEER_DEFAULT_OUTBOUND_TIMEOUT_MS", "defaultOutboundTimeoutMs"},
	{"PEER_INBOUND_MAX_CONCURRENT", "inboundMaxConcurrent"},
	{"PEER_MAX_HOPS", "maxHops"},
}

// SettingsEnvironment returns the names of the variables that take precedence over the file. A blank variable counts as unset.
//
//	PEER_ENABLED                      enabled
//	PEER_INSTANCE_ID                  instanceId
//	PEER_INSTANCE_NAME                instanceName
//	PEER_DEFAULT_OUTBOUND_TIMEOUT_MS  defaultOutboundTimeoutMs
//	PEER_INBOUND_MAX_CONCURRENT       inboundMaxConcurrent
//	PEER_MAX_HOPS                     maxHops
//
// The variables that tokenEnv names are read too.
func SettingsEnvironment() []string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.name
	}
	return names
}

// environment replaces members by variables. Mistakes are reported under the name of the member.
func (p *parser) environment(o *settingsObject) {
	for _, v := range variables {
		text, _ := p.lookup(v.name)
		if text = strings.TrimSpace(text); text != "" {
			o.set(v.member, text)
		}
	}
}
