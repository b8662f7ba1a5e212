/* What a node of oneTBB's flow graph costs beside its work: serial function nodes in a row that add one to each message, by one worker thread.
 * The difference of LONG and SHORT rows is what the further nodes take, without what it takes to put the messages in and to wait for the last.
 * So few that nodes and messages stay in the first two levels of cache. Prints a line each: policy and ns per message and node, the median of
 * BATCHES pairs. Argument: the CPU. */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

namespace flow = oneapi::tbb::flow;

enum { SHORT = 4, LONG = 20, MESSAGES = 500, BATCHES = 201 };

template <class Policy> class Row {
    using Node = flow::function_node<int, int, Policy>;
    flow::graph graph;
    std::vector<std::unique_ptr<Node>> nodes;
    int last = 0;

public:
    explicit Row(int length) {
        // Only a body that throws nothing runs at once, as the lightweight policy wants.
        auto body = [this](int x) noexcept { return last = x + 1; };
        for (int i = 0; i < length; i++) {
            nodes.push_back(std::make_unique<Node>(graph, flow::serial, body));
            if (i > 0)
                flow::make_edge(*nodes[i - 1], *nodes[i]);
        }
    }

    double took_ns() {
        auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < MESSAGES; i++)
            nodes[0]->try_put(i);
        graph.wait_for_all();
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        // The last message has been through all nodes.
        if (last != MESSAGES - 1 + (int)nodes.size())
            std::exit(1);
        return took.count();
    }
};

template <class Policy> void measure(const char *name) {
    Row<Policy> few(SHORT), many(LONG);
    std::vector<double> each_ns;
    few.took_ns();
    many.took_ns();
    for (int i = 0; i < BATCHES; i++) {
        double short_ns = few.took_ns();
        each_ns.push_back((many.took_ns() - short_ns) / MESSAGES / (LONG - SHORT));
    }
    std::sort(each_ns.begin(), each_ns.end());
    std::printf("%s %.4g\n", name, each_ns[BATCHES / 2]);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(std::atoi(argv[1]), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return 1;
    oneapi::tbb::global_control one(oneapi::tbb::global_control::max_allowed_parallelism, 1);
    measure<flow::queueing>("queueing");
    measure<flow::queueing_lightweight>("lightweight");
}
