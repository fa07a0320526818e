"""sqlalchemy: a table in sqlite's memory, filled and read as objects; scale: thousands of rows."""


def main(scale):
    from sqlalchemy import Integer, String, create_engine, func, select
    from sqlalchemy.orm import DeclarativeBase, Session, mapped_column

    class Base(DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "orders"
        id = mapped_column(Integer, primary_key=True)
        name = mapped_column(String(40))
        amount = mapped_column(Integer)

    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Order(name="order %d" % number, amount=number % 100) for number in range(scale * 1000))
        session.commit()
        orders = session.scalars(select(Order).where(Order.amount > 50)).all()
        total = session.scalar(select(func.sum(Order.amount)))
        assert len(orders) > scale * 400 and total > 0
