package kafkatest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary one that starts a broker, says where, and goes on until it is killed.
const childEnv = "TURNTABLE_TEST_KAFKA_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
	}
	goleak.VerifyTestMain(Main(m))
}

func child() {
	c, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.nodes[0].dir)
	select {}
}
