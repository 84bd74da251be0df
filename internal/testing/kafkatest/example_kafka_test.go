//go:build kafka

package kafkatest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cluster, err := kafkatest.Start(ctx, kafkatest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("brokers:", len(cluster.Bootstrap()))
	fmt.Println("killed:", cluster.Kill(1))
	fmt.Println("back again:", cluster.Restart(ctx, 1))
	fmt.Println("closed:", cluster.Close())
	// Output:
	// brokers: 1
	// killed: <nil>
	// back again: <nil>
	// closed: <nil>
}
