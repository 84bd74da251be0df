package instance_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// collecting is a group whose row is the number of records, each of which stands in a part of its own. Every third one
// gives up all parts and begins again; "gone" removes the row. It emits what it finds.
func collecting() *goka.GroupGraph {
	return goka.DefineGroup("g",
		goka.Input("in", codec.String(), func(ctx goka.Context, m any) {
			r := ctx.(runtimeapi.Runtime)
			n, found := count(ctx.Value()), ""
			for i := range n {
				part, err := r.Part(uint32(i))
				if err != nil {
					ctx.Fail(err)
				}
				found += string(part) + ";"
			}
			ctx.Emit("out", ctx.Key(), found)
			value := m.(codec.Decoded[string]).Value
			switch {
			case value == "gone":
				ctx.Delete()
			case n == 3:
				ctx.SetValue("0")
			default:
				r.SetPart(uint32(n), []byte(value))
				ctx.SetValue(strconv.Itoa(n + 1))
				return
			}
			for i := range n {
				r.SetPart(uint32(i), nil)
			}
		}),
		goka.Output("out", codec.String()), goka.Persist(codec.String()))
}

// A row that is found after a crash has the parts it names, whether it is read by the same process, from a local store on
// disk or from the changelog.
func TestRowsHaveTheirParts(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		_, brokers := cluster(t, "in", "out", "g-table")
		dir := t.TempDir()
		var want []string
		var offset int64
		step := func(lost bool, answers string, inputs ...string) {
			if lost {
				require.NoError(t, os.RemoveAll(dir))
			}
			inst := run(t, instance.Config{
				Brokers: brokers, Graph: collecting(), StorageDir: dir, InstanceID: "i1", Guarantee: guarantee,
			})
			for _, in := range inputs {
				put(t, brokers, keyed("in", "k", in))
				offset++
				eventually(t, func() bool { // the next one must not be ahead of this one's row
					return committed(t, brokers, "g", "in", codec.PartitionOf("k", 2)) == offset
				})
			}
			want = append(want, answers)
			got := take(t, brokers, "out", len(want)+len(inputs)-1)
			require.Equal(t, answers, string(got[len(got)-1].Value))
			for range len(inputs) - 1 {
				want = append(want, "")
			}
			inst.stop()
			require.NoError(t, inst.wait(t))
		}
		step(false, "a;", "a", "b")
		step(false, "a;b;", "c")
		step(true, "a;b;c;", "over")
		step(true, "", "d")
		step(true, "d;", "gone")
		step(true, "", "e")

		// Parts go to the changelog ahead of their row, and out of it behind the row that does without.
		var log []string
		for _, r := range takeFrom(t, brokers, "g-table") {
			key := string(r.Key)
			if runtimeapi.IsPart(key) {
				key = "part " + key[2:]
			}
			log = append(log, key+"="+string(r.Value))
		}
		require.Equal(t, []string{
			"part 0=a", "k=1", "part 1=b", "k=2", "part 2=c", "k=3", "k=0", "part 0=", "part 1=", "part 2=",
			"part 0=d", "k=1", "k=", "part 0=", "part 0=e", "k=1",
		}, log)
	})
}

// takeFrom reads what there is of a topic.
func takeFrom(t testing.TB, brokers []string, topic string) []*kgo.Record {
	t.Helper()
	return takeIn(t, brokers, topic, 1<<20, 2*time.Second)
}
