package main

import (
	"maps"
	"slices"

	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/turn"
)

// withoutEffect returns the variables that are set and that no part of this process reads.
func (s *settings) withoutEffect() (names []string) {
	// Every WebSocket reads all records, and sessions end on time without a search for inactive ones.
	read := map[string]bool{"PIPELINE_CONSUMER_GROUP": false, memoirInterval: false}
	adds := func(name string) bool {
		return s.parts.turn && slices.ContainsFunc(s.additions, func(a addition) bool { return a.name == name })
	}
	for _, v := range []struct {
		runs  bool
		names []string
	}{
		{s.parts.turn, append(turn.EnvironmentNames(), sdkVariable, orderedVariable, importVariable)},
		{s.parts.turn, []string{memoirEnabled, sessionCosts, toolLatencies}},
		{s.parts.turn, slices.Collect(maps.Keys(budgetVariables(&turn.Budgets{})))},
		{adds("memory"), []string{memoirThreshold}},
		{adds("costs"), []string{tenantSeparator}},
		{s.parts.sink, append(delivery.EnvironmentNames(), "OUTPUT_CONSUMER_GROUP")},
		{s.parts.groups(), []string{
			"TOOL_AGG_PUNCTUATE_INTERVAL_MS", "PROCESSING_GUARANTEE", "KAFKA_PROCESSING_GUARANTEE", "KAFKA_STATE_DIR",
			"KAFKA_GROUP_INSTANCE_ID", "KAFKA_REPLICATION_FACTOR",
		}},
		{s.parts.turn || s.parts.doors || s.parts.sink, []string{"ALLOWED_HOST_MAPPING", "KAFKA_MAX_REQUEST_SIZE"}},
		{s.parts.turn || s.parts.listens(), []string{"GATE_POLICY"}},
		{s.parts.doors, []string{
			"PORT", "TOOL_CALLBACK_SECRET", "TOOL_CALLBACK_SECRET_PREVIOUS", "TOOL_CALLBACK_ANY_AGENT",
			"TOOL_CALLBACK_WITHOUT_EXPIRY", "TOOL_CALLBACK_SINGLE_USE", shortSecret,
		}},
		{s.parts.websocket, []string{"WS_PORT", "WS_RESUME_KEY", "WS_RESUME_KEY_PREVIOUS", operatorsVariable, everyoneVariable}},
		{s.parts.listens(), []string{
			"AUTH_KEYS_FILE", "AUTH_JWKS", "AUTH_JWT_ISSUER", "AUTH_JWT_AUDIENCE", "AUTH_JWT_ALGORITHMS", "AUTH_JWT_SESSIONS_CLAIM",
			"AUTH_JWT_RIGHTS_CLAIM", "AUTH_CLIENT_CA_FILE", "AUTH_CLIENT_NAME", "AUTH_SESSIONS", "AUTH_RIGHTS", "ALLOWED_ORIGINS",
			"TRUSTED_PROXIES",
			"TLS_CERTIFICATE_FILE", "TLS_KEY_FILE",
		}},
	} {
		for _, name := range v.names {
			read[name] = read[name] || v.runs
		}
	}
	for name, used := range read {
		if !used && variable(name) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
