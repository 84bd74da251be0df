package turns

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// FlightDeck's SDKs let the broker create think-dlq, with the broker's default number of partitions. The turn starts, and
// each failure ends its turn once: over kills, and when the topic gains partitions.
func TestThinkFailuresCountOnceWithAnyNumberOfPartitions(t *testing.T) {
	const partitions, sessions = 4, 12
	rounds := 4
	if short {
		rounds = 2
	}
	for failures, order := range map[int32][]processors.Guarantee{
		1: {processors.AtLeastOnce, processors.ExactlyOnce}, 12: {processors.ExactlyOnce, processors.AtLeastOnce},
	} {
		t.Run(fmt.Sprintf("%d partitions", failures), func(t *testing.T) {
			kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
				t.Parallel()
				c := config{
					agent: testbroker.Agent(), instance: "i1", dir: t.TempDir(), brokers: testbroker.Start(t), guarantee: guarantee,
					child: settings{MetadataMS: 500},
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				names := wiretest.NamesOf(c.agent)
				admin := createThinkDLQ(t, c, failures)
				require.Eventually(t, func() bool { // a broker may not know yet that think-dlq exists
					return wiretest.CreateTopics(ctx, c.brokers, c.agent, partitions) == nil
				}, wait, 10*time.Millisecond)
				(&field{T: t, config: c, ctx: ctx}).visible(names)
				options := []wiretest.OracleOption{wiretest.WaitLimit(time.Minute)}
				if guarantee == processors.ExactlyOnce {
					options = append(options, wiretest.ExactlyOnce())
				}
				read := func() *wiretest.Oracle {
					oracle, err := wiretest.NewOracle(ctx, c.brokers, c.agent, options...)
					require.NoError(t, err)
					return oracle
				}
				oracle := read()
				defer func() { oracle.Close() }()
				fail := func(round int) {
					driver, err := wiretest.NewDriver(ctx, c.brokers, c.agent)
					require.NoError(t, err)
					require.NoError(t, driver.Start(ctx))
					for n := range sessions {
						session := fmt.Sprintf("s-%d-%d", round, n)
						plan := wiretest.Plan{Key: session}
						if n%3 > 0 {
							plan.Quirks = []wiretest.Quirk{wiretest.QuirkFail}
						}
						_, err := driver.Ask(ctx, session, plan)
						require.NoError(t, err)
					}
					if round < rounds {
						killedAtRow(t, c, int32(2+round))
					}
					i := spawn(t, c)
					for n := range sessions {
						require.NoError(t, oracle.WaitOutputs(ctx, fmt.Sprintf("s-%d-%d", round, n), 1), i.Logged())
					}
					require.NoError(t, i.Stop())
					require.NoError(t, driver.Close())
				}
				for round := range rounds {
					fail(round)
				}
				grown, err := admin.UpdatePartitions(ctx, int(failures)+3, names.ThinkDLQ)
				require.NoError(t, err)
				require.NoError(t, grown.Error())
				require.Eventually(t, func() bool {
					now, err := admin.ListTopics(ctx, names.ThinkDLQ)
					return err == nil && len(now[names.ThinkDLQ].Partitions) == int(failures)+3
				}, wait, 10*time.Millisecond)
				oracle.Close()
				oracle = read() // it reads the partitions that exist when it starts
				fail(rounds)
				last := spawn(t, c)
				report, err := oracle.Settle(ctx)
				require.NoError(t, err, report.String())
				require.True(t, report.Kept(), report.String())
				require.Equal(t, (rounds+1)*sessions, report.Counts.Answers+report.Counts.Codes[string(topics.CodeThinkFailed)])
				require.Equal(t, (rounds+1)*sessions*2/3, report.Counts.Codes[string(topics.CodeThinkFailed)])
				require.NoError(t, last.Stop())
			}, order...)
		})
	}
}

func createThinkDLQ(t *testing.T, c config, partitions int32) *kadm.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(t.Context(), partitions, -1, nil, wiretest.NamesOf(c.agent).ThinkDLQ)
	require.NoError(t, err)
	return admin
}
