package beanstalk_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

func BenchmarkReserveThenDelete(b *testing.B) {
	conn, ctx := open(b, brokertest.StartBeanstalkd(b), "mail"), context.Background()
	for left := 0; b.Loop(); left-- {
		if left == 0 {
			left = refill(b, conn)
		}
		job, err := conn.Reserve(ctx, 0)
		want(b, "reserve", err, nil)
		want(b, "delete", conn.Delete(ctx, job), nil)
	}
}

func BenchmarkDeleteAndReserve(b *testing.B) {
	conn, ctx := open(b, brokertest.StartBeanstalkd(b), "mail"), context.Background()
	refill(b, conn)
	job := reserve(b, conn)
	for left := 0; b.Loop(); left-- {
		if left == 0 {
			left = refill(b, conn)
		}
		next, deleted, err := conn.DeleteAndReserve(ctx, job, 0)
		want(b, "delete", deleted, nil)
		want(b, "reserve", err, nil)
		job = next
	}
}

func BenchmarkPutMany(b *testing.B) {
	for _, size := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			conn := open(b, brokertest.Start(b))
			puts := make([]beanstalk.Put, size)
			for i := range puts {
				puts[i] = beanstalk.Put{Tube: "mail", Body: make([]byte, 100), TTR: time.Minute}
			}
			for b.Loop() {
				for _, result := range conn.PutMany(context.Background(), puts) {
					want(b, "put", result.Err, nil)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// refill puts jobs for the next so many rounds, off the clock.
func refill(b *testing.B, conn *beanstalk.Conn) int {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	puts := make([]beanstalk.Put, 10_000)
	for i := range puts {
		puts[i] = beanstalk.Put{Tube: "mail", Body: make([]byte, 100), TTR: time.Hour}
	}
	for _, result := range conn.PutMany(context.Background(), puts) {
		want(b, "put", result.Err, nil)
	}
	return len(puts)
}
