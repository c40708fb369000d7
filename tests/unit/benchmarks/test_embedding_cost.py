from embedding_cost import Rates, cost_table, rate_table

RATES = Rates(
    name="tiny",
    api=2500.0,
    job=2000.0,  # 100 sentences of 20 words per second
    ratios=(0.8, 0.9, 0.7),
    start=0.5,
    mib=400.0,
    vector_bytes=528.0,
    word_bytes=1536,
)


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    assert "| tiny | 2,500 | 2,000 | 80.0 % (70.0 to 90.0) | 0.50 s |" in rate_table([RATES])


def test_costs_follow_from_the_rate_and_the_sizes() -> None:
    rows = cost_table([RATES], disk=1e6).splitlines()
    million = "| tiny | 1,000,000 | 2.8 hours | 2.6 minutes | 400 MiB | 528 MB | 31 GB | 19 / 0 |"
    assert million in rows
    assert any(
        "| 1,000,000,000 | 116 days | 1.8 days | 400 MiB | 528 GB | 31 TB |" in row for row in rows
    )
