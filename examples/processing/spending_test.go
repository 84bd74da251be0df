package main

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// The model calls of all sessions of a tenant count towards its budget.
func TestATenantsBudgetEndsItsTurns(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	defer broker.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p := runs(ctx, t, []string{"doors", "health"}, "AGENT_NAME=pilot", "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","),
		"KAFKA_STATE_DIR="+t.TempDir(), "TOOL_AGG_PUNCTUATE_INTERVAL_MS=20", "HEALTH_ADDR=127.0.0.1:0", "PORT=127.0.0.1:0",
		"BUDGET_PRICE_PER_TENANT=0.2", "TENANT_SEPARATOR=:", "TOOL_LATENCIES=true")
	p.healthy()
	pipeline := follow(ctx, t, broker.Addrs(), "enriched-message-input", "message-output", "session-cost", "spending")
	say := func(session, user string) {
		status, answer := post(ctx, t, "http://"+p.addrs["doors"]+"/api/chat",
			`{"session_id":"`+session+`","user_id":"`+user+`","content":"Which berth?"}`, "")
		require.Equal(t, 200, status, answer)
	}
	for _, user := range []string{"harbor:mira", "harbor:otto"} {
		session := "of-" + user
		say(session, user)
		pipeline.until("enriched-message-input", session, "")
		pipeline.write("think-request-response", session, `{"session_id":"`+session+`","think_cost":0.125,`+
			`"last_input_response":[{"role":"assistant","content":"N4."}],"end_turn":true}`)
		pipeline.until("message-output", session, `"content":"N4."`)
		pipeline.until("session-cost", session, "0.125")
	}
	// The costs reach the turn through two other groups: a session that begins before that is still answered.
	for tries, over := 0, false; !over; tries++ {
		session := "session-" + strconv.Itoa(tries)
		say(session, "harbor:nils")
		over = strings.Contains(pipeline.until("", session, ""), `"code":"over_budget"`)
	}
	say("elsewhere", "pier:nils")
	pipeline.until("enriched-message-input", "elsewhere", "")
	p.terminate()
}
